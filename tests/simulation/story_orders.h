// SPDX-License-Identifier: Apache-2.0
//
// StoryOrders: the operators of a simulated run. They give any order for any procedure, after they
// have asked for its preview; what the preview says must come true. An acknowledged order is in the
// audit exactly once, in every later life too, and a copy of it under its nonce does nothing; a
// refused one never is. What was bypassed never runs
// again and holds nothing.

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

  /// Looks in the audit for the outcome of the orders that got no answer, and repeats the others
  /// that have a nonce.
  void begin_life(ProcedureExecutor& executor);
  /// Called after every move.
  void check(ProcedureExecutor& executor);
  void check_audits(ProcedureExecutor& executor);
  /// The audit of that root may be gone: its result was acknowledged.
  void was_acknowledged(ProcedureId root) { acknowledged_.insert(root.value); }
  /// Moves what is wrong to `findings`.
  void take_findings(Findings& findings);

  /// Gives an order. `mends`: the cause of every failure in that tree is mended before. `root` is
  /// the task of the tree's root.
  void order(ProcedureExecutor& executor, RepairVerb verb, ProcedureId target, std::size_t root,
             bool mends);
  /// Whether the end of this root was ordered, and acknowledged.
  [[nodiscard]] bool was_bypassed(ProcedureId root) const { return bypassed_.contains(root.value); }
  /// Whether the rollback of this root was ordered while no member of its tree was parked.
  [[nodiscard]] bool is_to_be_undone(ProcedureId root) const {
    return undone_.contains(root.value);
  }
  /// Whether an order may have made a member of this tree go on.
  [[nodiscard]] bool may_be_repaired(ProcedureId root) const {
    return repaired_.contains(root.value);
  }

 private:
  enum class Answer : std::uint8_t { kNone, kUnknown, kDone, kRefused };
  struct Order {
    RepairVerb verb{};
    ProcedureId target;
    ProcedureId root;
    std::uint32_t step = 0;  ///< The step that the order skips.
    ProcedureId about;       ///< The procedure that the preview names, if it accepts.
    Status preview;
    bool goes_forward = false;  ///< No member of the tree was parked.
    bool waits = false;         ///< By its preview, for running steps.
    Answer answer = Answer::kNone;
  };

  void repeat(ProcedureExecutor& executor, std::size_t number);
  void repeat_refused(ProcedureExecutor& executor, std::size_t number);
  /// `line` is the preview's first line, `root` a task.
  void expect_effect(const Order& order, const std::string& line, std::size_t root);
  void heard(std::size_t number, const Status& answer);
  void was_done(Order& order);
  void check_audit(ProcedureExecutor& executor, ProcedureId root);

  TaskWorld& world_;
  Findings found_;
  std::vector<Order> orders_;
  std::set<std::uint64_t> acknowledged_;  // roots
  std::set<std::uint64_t> repaired_;      // roots
  std::set<std::uint64_t> undone_;        // roots
  std::set<std::uint64_t> bypassed_;      // heads of what was ended
};

}  // namespace pv2::testing
