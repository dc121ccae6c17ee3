// SPDX-License-Identifier: Apache-2.0
//
// StoryOrders: the operators of a simulated run. They order what they like, of whomever they like,
// after they have asked what it would do; what the preview says must come true. An order that was
// acknowledged is in the audit exactly once, in every later life too, and one that was refused
// never. What was bypassed never runs again and holds nothing.

#pragma once

#include <pv2/engine/procedure_executor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "pv2/testing/findings.h"
#include "simulation/task_world.h"

namespace pv2::testing {

/// Owned by one thread.
class StoryOrders {
 public:
  explicit StoryOrders(TaskWorld& world) : world_(world) {}

  /// Looks in the audit for what became of the orders that nobody answered.
  void begin_life(ProcedureExecutor& executor);
  /// After every move.
  void check(ProcedureExecutor& executor);
  /// Of an order that came too late the entry is deleted, but not at once.
  enum class Moment : std::uint8_t { kOnTheWay, kSettled };
  void check_audits(ProcedureExecutor& executor, Moment moment);
  /// The audit of that root may be gone: its result was acknowledged.
  void was_acknowledged(ProcedureId root) { acknowledged_.insert(root.value); }
  /// Says what is wrong, once.
  void take_findings(Findings& findings);

  /// `mends`: the cause of whatever fails in that tree is mended before.
  /// `root` is the task of its root.
  void order(ProcedureExecutor& executor, RepairVerb verb, ProcedureId target, std::size_t root,
             bool mends);
  /// Whether the end of this root was ordered, and acknowledged.
  [[nodiscard]] bool was_bypassed(ProcedureId root) const { return bypassed_.contains(root.value); }
  /// Whether its rollback was, while nothing of it was parked.
  [[nodiscard]] bool is_to_be_undone(ProcedureId root) const {
    return undone_.contains(root.value);
  }
  /// Whether something of this tree may have been made to go on.
  [[nodiscard]] bool may_be_repaired(ProcedureId root) const {
    return repaired_.contains(root.value);
  }

 private:
  enum class Answer : std::uint8_t { kNone, kUnknown, kDone, kRefused };
  struct Order {
    RepairVerb verb{};
    ProcedureId target;
    ProcedureId root;
    std::uint32_t step = 0;  ///< The one that it skips.
    ProcedureId about;       ///< Whom it changes, by its preview; none if that refused it.
    Status preview;
    bool goes_forward = false;  ///< Nothing of the tree was parked.
    bool waits = false;         ///< For what somebody is in the middle of, by its preview.
    Answer answer = Answer::kNone;
  };

  /// `line` is what the preview says first, `root` a task.
  void expect_effect(const Order& order, const std::string& line, std::size_t root);
  void heard(std::size_t number, const Status& answer);
  void was_done(Order& order);
  void check_audit(ProcedureExecutor& executor, ProcedureId root, Moment moment);

  TaskWorld& world_;
  Findings found_;
  std::vector<Order> orders_;
  std::set<std::uint64_t> acknowledged_;  // roots
  std::set<std::uint64_t> repaired_;      // roots
  std::set<std::uint64_t> undone_;        // roots
  std::set<std::uint64_t> bypassed_;      // heads of what was ended
};

}  // namespace pv2::testing
