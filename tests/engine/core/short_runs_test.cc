// SPDX-License-Identifier: Apache-2.0
//
// How short runs are counted when one of them turns out to be long.

#include "core/short_runs.h"

#include "support/catch.h"

namespace pv2::testing::short_runs_test {
namespace {

TEST_CASE("a run counts as short until it ends") {
  ShortRuns runs;
  CHECK_FALSE(runs.any());
  const auto first = runs.enter();
  const auto second = runs.enter();
  runs.leave(first);
  CHECK(runs.any());
  runs.leave(second);
  CHECK_FALSE(runs.any());
}

TEST_CASE("runs that were forgotten count no more, and their end changes nothing") {
  ShortRuns runs;
  const auto stuck = runs.enter();
  const auto other = runs.enter();
  runs.forget();
  CHECK_FALSE(runs.any());

  const auto next = runs.enter();
  runs.leave(stuck);
  runs.leave(other);
  CHECK(runs.any());
  runs.leave(next);
  CHECK_FALSE(runs.any());
}

}  // namespace
}  // namespace pv2::testing::short_runs_test
