// SPDX-License-Identifier: Apache-2.0
//
// The plan of rules: which frame meets which rule, without a proxy.

#include "pv2/rpc/scripted_faults.h"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.h"

namespace pv2::testing::scripted_faults_test {
namespace {

const Fate kDrop{.copies = 0};
const Fate kDouble{.copies = 2};

PassingFrame call(std::string_view method) {
  return {.connection = 1, .kind = FrameKind::kCall, .method = method};
}
PassingFrame reply(std::string_view method) {
  return {.connection = 1,
          .direction = Direction::kToClient,
          .kind = FrameKind::kReply,
          .method = method};
}

std::vector<std::uint32_t> copies(ScriptedFaults& plan, const PassingFrame& frame, int times) {
  std::vector<std::uint32_t> copies;
  for (int i = 0; i < times; ++i) copies.push_back(plan.fate(frame).copies);
  return copies;
}

TEST_CASE("scripted faults: the third call of a method is dropped, and no other frame") {
  ScriptedFaults plan;
  REQUIRE(plan.add({.direction = Direction::kToServer,
                    .kind = FrameKind::kCall,
                    .method = "append",
                    .skip = 2,
                    .fate = kDrop})
              .ok());

  CHECK(copies(plan, call("append"), 2) == std::vector<std::uint32_t>{1, 1});
  CHECK(copies(plan, call("read"), 3) == std::vector<std::uint32_t>{1, 1, 1});
  CHECK(copies(plan, reply("append"), 3) == std::vector<std::uint32_t>{1, 1, 1});
  CHECK(plan.rules_left() == 1);
  CHECK(copies(plan, call("append"), 2) == std::vector<std::uint32_t>{0, 1});
  CHECK(plan.rules_left() == 0);
}

TEST_CASE("scripted faults: the next two replies are duplicated") {
  ScriptedFaults plan;
  REQUIRE(plan.add({.kind = FrameKind::kReply, .times = 2, .fate = kDouble}).ok());

  CHECK(copies(plan, reply("append"), 3) == std::vector<std::uint32_t>{2, 2, 1});
}

TEST_CASE("scripted faults: a rule is about one connection if it names it") {
  ScriptedFaults plan;
  REQUIRE(plan.add({.connection = 2, .fate = kDrop}).ok());

  CHECK(plan.fate({.connection = 1}).copies == 1);
  CHECK(plan.fate({.connection = 2}).copies == 0);
}

TEST_CASE("scripted faults: pieces without a kind match rules without a kind") {
  ScriptedFaults plan;
  REQUIRE(plan.add({.kind = FrameKind::kCall, .fate = kDrop}).ok());
  REQUIRE(plan.add({.fate = kDouble}).ok());

  CHECK(plan.fate({.connection = 1}).copies == 2);
}

TEST_CASE("scripted faults: a frame that meets a rule is not seen by the rules after it") {
  ScriptedFaults plan;
  REQUIRE(plan.add({.skip = 1, .fate = kDrop}).ok());
  REQUIRE(plan.add({.skip = 1, .fate = kDouble}).ok());

  CHECK(copies(plan, call("append"), 4) == std::vector<std::uint32_t>{1, 0, 2, 1});
}

TEST_CASE("scripted faults: a rule outside of the bounds is refused") {
  ScriptedFaults plan;
  const auto refused = [&](const FaultRule& rule) {
    return plan.add(rule).code() == StatusCode::kInvalidArgument;
  };

  CHECK(refused({.times = 0}));
  CHECK(refused({.fate = {.copies = Fate::kCopiesMax + 1}}));
  CHECK(refused({.fate = {.delay = -Duration(1)}}));
  CHECK(refused({.fate = {.delay = Fate::kTimeMax + Duration(1)}}));
  CHECK(refused({.fate = {.hold_back = -Duration(1)}}));
  CHECK(plan.rules_left() == 0);
}

TEST_CASE("scripted faults: the number of rules is bounded") {
  ScriptedFaults plan;
  for (std::size_t i = 0; i < ScriptedFaults::kRulesMax; ++i) REQUIRE(plan.add({}).ok());

  CHECK(plan.add({}).code() == StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace pv2::testing::scripted_faults_test
