// SPDX-License-Identifier: Apache-2.0
//
// NextPoll: of what a worker queues before it polls, some procedures are for itself.

#include "core/next_poll.h"

#include "support/catch.h"

namespace pv2::testing::next_poll_test {

const int engine = 0;
const int other_engine = 0;

TEST_CASE("in the scope before its next poll a thread takes some procedures, of its own engine") {
  CHECK(NextPoll::takes_up_to(&engine) == 0);
  {
    const NextPoll scope(&engine, 3);
    CHECK(NextPoll::takes_up_to(&other_engine) == 0);
    CHECK(NextPoll::takes_up_to(&engine) == 3);
    NextPoll::take(&engine, 2);
    CHECK(NextPoll::takes_up_to(&engine) == 1);
    NextPoll::take(&engine, 1);
    CHECK(NextPoll::takes_up_to(&engine) == 0);
  }
  { const NextPoll unused(&engine, 1); }
  CHECK(NextPoll::takes_up_to(&engine) == 0);
  const NextPoll has_jobs_left(&engine, 0);
  CHECK(NextPoll::takes_up_to(&engine) == 0);
}

TEST_CASE("a thread that gives up its next poll says whether it has taken a procedure, once") {
  CHECK_FALSE(NextPoll::gives_up(&engine));
  {
    const NextPoll scope(&engine, 2);
    NextPoll::take(&engine, 1);
    CHECK_FALSE(NextPoll::gives_up(&other_engine));
    CHECK(NextPoll::gives_up(&engine));
    CHECK_FALSE(NextPoll::gives_up(&engine));
    CHECK(NextPoll::takes_up_to(&engine) == 0);
  }
  const NextPoll scope(&engine, 2);
  NextPoll::take(&engine, 0);
  CHECK_FALSE(NextPoll::gives_up(&engine));
  CHECK(NextPoll::takes_up_to(&engine) == 0);
}

TEST_CASE("an engine that runs in a step of another one has its own next poll") {
  const NextPoll outer(&engine, 1);
  {
    const NextPoll inner(&other_engine, 2);
    CHECK(NextPoll::takes_up_to(&engine) == 0);
    CHECK(NextPoll::takes_up_to(&other_engine) == 2);
  }
  CHECK(NextPoll::takes_up_to(&engine) == 1);
}

}  // namespace pv2::testing::next_poll_test
