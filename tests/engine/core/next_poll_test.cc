// SPDX-License-Identifier: Apache-2.0
//
// NextPoll: of what a worker queues before it polls, one procedure is for itself.

#include "core/next_poll.h"

#include "support/catch.h"

namespace pv2::testing::next_poll_test {

const int engine = 0;
const int other_engine = 0;

TEST_CASE("in the scope before its next poll a thread takes one procedure, of its own engine") {
  CHECK_FALSE(NextPoll::takes_one(&engine));
  {
    const NextPoll scope(&engine, true);
    CHECK_FALSE(NextPoll::takes_one(&other_engine));
    CHECK(NextPoll::takes_one(&engine));
    CHECK_FALSE(NextPoll::takes_one(&engine));
  }
  { const NextPoll unused(&engine, true); }
  CHECK_FALSE(NextPoll::takes_one(&engine));
  const NextPoll has_jobs_left(&engine, false);
  CHECK_FALSE(NextPoll::takes_one(&engine));
}

TEST_CASE("a thread that gives up its next poll says whether it has taken a procedure, once") {
  CHECK_FALSE(NextPoll::gives_up(&engine));
  {
    const NextPoll scope(&engine, true);
    CHECK(NextPoll::takes_one(&engine));
    CHECK_FALSE(NextPoll::gives_up(&other_engine));
    CHECK(NextPoll::gives_up(&engine));
    CHECK_FALSE(NextPoll::gives_up(&engine));
    CHECK_FALSE(NextPoll::takes_one(&engine));
  }
  const NextPoll scope(&engine, true);
  CHECK_FALSE(NextPoll::gives_up(&engine));
  CHECK_FALSE(NextPoll::takes_one(&engine));
}

TEST_CASE("an engine that runs in a step of another one has its own next poll") {
  const NextPoll outer(&engine, true);
  {
    const NextPoll inner(&other_engine, true);
    CHECK_FALSE(NextPoll::takes_one(&engine));
    CHECK(NextPoll::takes_one(&other_engine));
  }
  CHECK(NextPoll::takes_one(&engine));
}

}  // namespace pv2::testing::next_poll_test
