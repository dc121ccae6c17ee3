// SPDX-License-Identifier: Apache-2.0
//
// ScriptedFaults: a plan of rules, for a test that needs one fault at one place. It knows no
// chance.

#pragma once

#include <pv2/base/mutex.h>

#include <optional>
#include <string>
#include <vector>

#include "pv2/rpc/fault_plan.h"

namespace pv2 {

/// A rule says which frames it is about, and what happens to them. This one drops the third call of
/// append:
///
///     {.direction = Direction::kToServer, .kind = FrameKind::kCall, .method = "append",
///      .skip = 2, .fate = {.copies = 0}}
struct FaultRule {
  // A field that is empty matches every frame.
  std::optional<std::uint64_t> connection{};
  std::optional<Direction> direction{};
  std::optional<FrameKind> kind{};
  std::optional<std::string> method{};  ///< A reply has the method of its call.
  /// How many matching frames the rule first leaves to other rules.
  std::uint64_t skip = 0;
  /// How many frames then get the fate; after them the rule is done.
  std::uint64_t times = 1;
  Fate fate{};
};

/// A frame has the fate of the first rule that matches it and skips no more; the rules after that
/// one do not see it. Without such a rule the proxy passes it on. Thread-safe.
class ScriptedFaults final : public FaultPlan {
 public:
  /// There are at most 1024, because the plan looks at all of them for each frame.
  static constexpr std::size_t kRulesMax = 1024;

  /// Appends a rule. kInvalidArgument: its fate is outside of its bounds, or `times` is 0;
  /// kResourceExhausted: there are kRulesMax that are not done.
  Status add(FaultRule rule) PV2_EXCLUDES(rules_mutex_);
  /// Tells how many rules are not done. A test that ends with some has not tested what it meant to.
  [[nodiscard]] std::size_t rules_left() const PV2_EXCLUDES(rules_mutex_);

  [[nodiscard]] Fate fate(const PassingFrame& frame) override PV2_EXCLUDES(rules_mutex_);

 private:
  mutable Mutex rules_mutex_;
  std::vector<FaultRule> rules_ PV2_GUARDED_BY(rules_mutex_);
};

}  // namespace pv2
