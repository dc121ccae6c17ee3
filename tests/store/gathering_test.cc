// SPDX-License-Identifier: Apache-2.0
//
// When the committer waits for requests that are about to come, and when it gives that up.

#include "gathering.h"

#include "support/catch.h"

namespace pv2::testing::gathering_test {
namespace {

TEST_CASE("with one group of procedures, or large units, nothing is waited for") {
  Gathering gathering;
  CHECK(gathering.wanted(5) <= 5);  // nothing was published yet
  gathering.published(16);
  CHECK(gathering.wanted(0) == 0);
  gathering.published(33);
  CHECK(gathering.wanted(5) <= 5);
}

TEST_CASE("after a small unit three fourths of it are waited for, beside what is queued") {
  Gathering gathering;
  gathering.published(16);
  CHECK(gathering.wanted(5) == 5 + 12);
  gathering.published(1);
  CHECK(gathering.wanted(5) == 6);
}

TEST_CASE("each wait in vain is followed by twice as many units without one, up to 64") {
  Gathering gathering;
  gathering.published(4);
  const auto units_without_wait = [&] {
    int units = 0;
    while (gathering.wanted(1) <= 1) ++units;
    return units;
  };
  for (const int expected : {0, 1, 2, 4, 8, 16, 32, 64, 64}) {
    CHECK(units_without_wait() == expected);
    gathering.waited(false);
  }
  CHECK(units_without_wait() == 64);
  gathering.waited(true);
  CHECK(units_without_wait() == 0);
}

}  // namespace
}  // namespace pv2::testing::gathering_test
