// SPDX-License-Identifier: Apache-2.0
//
// The plan of rates and a seed: what it promises about chance, without a proxy.

#include "pv2/rpc/random_faults.h"

#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.h"

namespace pv2::testing::random_faults_test {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

const FaultRates kSome{
    .drop = 0.2, .duplicate = 0.2, .delay = 0.2, .reorder = 0.2, .cut = 0.2, .half_open = 0.2};

PassingFrame call(std::uint64_t index, std::uint64_t connection = 1,
                  Direction direction = Direction::kToServer) {
  return {.connection = connection,
          .direction = direction,
          .index = index,
          .kind = FrameKind::kCall,
          .method = "append"};
}

std::string text(const Fate& fate) {
  return std::to_string(fate.copies) + " " + std::to_string(fate.delay.count()) + " " +
         std::to_string(fate.behind) + " " + std::to_string(static_cast<int>(fate.cut)) +
         std::to_string(static_cast<int>(fate.half_open));
}

std::vector<std::string> history(const RandomFaultsOptions& options) {
  const auto plan = *RandomFaults::create(options);
  std::vector<std::string> fates;
  for (std::uint64_t i = 0; i < 100; ++i) fates.push_back(text(plan->fate(call(i))));
  return fates;
}

TEST_CASE("random faults: the same seed gives the same fates, another seed gives others") {
  CHECK(history({.seed = 7, .to_server = kSome}) == history({.seed = 7, .to_server = kSome}));
  CHECK(history({.seed = 7, .to_server = kSome}) != history({.seed = 8, .to_server = kSome}));
}

TEST_CASE("random faults: a fate does not depend on the frames that were asked about before") {
  const auto plan = *RandomFaults::create({.to_server = kSome, .to_client = kSome});
  const auto other = *RandomFaults::create({.to_server = kSome, .to_client = kSome});

  for (std::uint64_t i = 0; i < 100; ++i) {
    const PassingFrame frame = call(i);
    static_cast<void>(other->fate(call(i, 2)));
    static_cast<void>(other->fate(call(i, 1, Direction::kToClient)));
    CHECK(text(plan->fate(frame)) == text(other->fate(frame)));
  }
}

TEST_CASE("random faults: one rate does not change which frames another one meets") {
  const auto drops = *RandomFaults::create({.to_server = {.drop = 0.3}});
  const auto both = *RandomFaults::create({.to_server = {.drop = 0.3, .delay = 0.5}});

  for (std::uint64_t i = 0; i < 100; ++i) {
    CHECK(drops->fate(call(i)).copies == both->fate(call(i)).copies);
  }
}

TEST_CASE("random faults: each direction has its rates, which are about as often as they say") {
  const auto plan = *RandomFaults::create({.to_server = {.drop = 0.25}});

  int dropped = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    if (plan->fate(call(i)).copies == 0) ++dropped;
    CHECK(plan->fate(call(i, 1, Direction::kToClient)).copies == 1);
  }

  // 1000 is expected, and the standard deviation is 27.
  CHECK(dropped > 850);
  CHECK(dropped < 1150);
}

TEST_CASE("random faults: a rate of 1 meets every frame, and of 0 none") {
  const auto plan = *RandomFaults::create({.to_server = {.duplicate = 1}});

  for (std::uint64_t i = 0; i < 1000; ++i) CHECK(plan->fate(call(i)).copies == 2);
}

TEST_CASE("random faults: times and distances are within what was asked for") {
  const auto plan = *RandomFaults::create({.to_server = {.delay = 1, .reorder = 1},
                                           .delay_max = microseconds(3),
                                           .behind_max = 2,
                                           .hold_back_max = milliseconds(5)});
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Fate fate = plan->fate(call(i));
    CHECK(fate.delay >= microseconds(1));
    CHECK(fate.delay <= microseconds(3));
    CHECK(fate.behind >= 1);
    CHECK(fate.behind <= 2);
    CHECK(fate.hold_back == milliseconds(5));
  }
}

TEST_CASE("random faults: the upkeep of a connection is spared unless it is asked for") {
  const auto sparing = *RandomFaults::create({.to_server = {.drop = 1}});
  const auto unsparing = *RandomFaults::create(
      {.to_server = {.drop = 1}, .spares = RandomFaultsOptions::Spares::kNothing});
  for (const FrameKind kind : {FrameKind::kHello, FrameKind::kWelcome, FrameKind::kPing,
                               FrameKind::kPong, FrameKind::kGoAway}) {
    PassingFrame frame = call(0);
    frame.kind = kind;
    CHECK(sparing->fate(frame).copies == 1);
    CHECK(unsparing->fate(frame).copies == 0);
  }
  CHECK(sparing->fate(call(0)).copies == 0);
}

TEST_CASE("random faults: rates change while the plan is in use") {
  const auto plan = *RandomFaults::create({});
  CHECK(plan->fate(call(0)).copies == 1);

  CHECK(plan->set_rates(Direction::kToServer, {.drop = 1}).ok());
  CHECK(plan->fate(call(1)).copies == 0);

  CHECK(plan->set_rates(Direction::kToServer, {.drop = 2}).code() == StatusCode::kInvalidArgument);
  CHECK(plan->fate(call(2)).copies == 0);
}

TEST_CASE("random faults: what is no rate or no time is refused") {
  const auto refused = [](const RandomFaultsOptions& options) {
    return RandomFaults::create(options).status().code() == StatusCode::kInvalidArgument;
  };

  CHECK(refused({.to_server = {.drop = -0.1}}));
  CHECK(refused({.to_client = {.half_open = 1.1}}));
  CHECK(refused({.to_client = {.cut = std::numeric_limits<double>::quiet_NaN()}}));
  CHECK(refused({.delay_max = Duration::zero()}));
  CHECK(refused({.delay_max = hours(2)}));
  CHECK(refused({.hold_back_max = -milliseconds(1)}));
  CHECK(refused({.behind_max = 0}));
}

}  // namespace
}  // namespace pv2::testing::random_faults_test
