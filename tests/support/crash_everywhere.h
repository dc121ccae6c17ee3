// SPDX-License-Identifier: Apache-2.0
//
// check_everywhere: pv2::testing's crash_everywhere for this project's own stories, on the memory
// store and on LevelDB. A finding fails the Catch2 test, and a failed Catch2 check inside a story
// is printed with the crash point. With PV2_TEST_PART=N only each N-th play takes place.

#pragma once

#include "pv2/testing/crash_everywhere.h"
#include "pv2/testing/seeds.h"
#include "support/catch.h"
#include "support/leveldb_ground.h"

namespace pv2::testing {

/// How thorough the test is. Like CrashPlan, whose `operations` are power cuts here.
struct StoryPlan {
  bool twice = false;
  bool leveldb = true;
  bool power_cuts = false;
  RetryPolicy retry{};
};

/// Fails the current test at the first bad crash point. Returns how many plays there were, or with
/// PV2_TEST_PART about how many there would have been.
inline std::size_t check_everywhere(const MakeStory& make, const StoryPlan& plan = {}) {
  CrashPlan all{.twice = plan.twice, .operations = plan.power_cuts, .retry = plan.retry};
  if (plan.leveldb) all.grounds.emplace_back([] { return std::make_unique<LevelDbGround>(); });
  const std::size_t each = test_part();
  std::size_t plays = 0;
  all.around = [&](const std::string& words, const std::function<void()>& play) {
    INFO(words);
    if (plays++ % each == 0) play();  // the first one, which nothing disturbs, always
  };
  const CrashReport report = crash_everywhere(make, all);
  INFO(report.failure);
  REQUIRE(report.ok());
  return report.plays * each;
}

}  // namespace pv2::testing
