// SPDX-License-Identifier: Apache-2.0
//
// Members at work: the members of a tree whose offloaded work has not ended, and what waits for its
// end. The rule: a member does not leave while it has work outstanding. So
//
//   - it counts as in flight, so the rollback of its domain begins when its work has ended;
//   - an order that ends it is published when its work has ended;
//   - a lock that it would give back in a wait or a back-off is given back when its work has ended.
//
// Offloads starts the work and runs it.

#pragma once

#include "core/engine_core.h"
#include "model/outstanding_work.h"
#include "model/tree_walk.h"

namespace pv2 {

/// Whether the procedure has work that has not ended.
[[nodiscard]] inline bool has_work(const Execution& execution) noexcept {
  return execution.work() != nullptr && !execution.work()->pieces.empty();
}

/// Calls `visit` with each member of the domain of `head`, and of the domains within it, that has
/// work outstanding.
template <class Visit>
void for_each_at_work(Execution& head, Visit visit) {
  (void)find_within(head.root()->domain.rare->at_work, head, [&](Execution& member) {
    PV2_ASSERT(has_work(member), "a member that its root counts at work has work outstanding");
    visit(member);
    return false;
  });
}

/// `member` has added its first piece of work: it is in flight, and its root counts it at work.
/// Called under the state mutex.
void work_begins(Execution& member);
/// The last piece of `member` has ended: its root does not count it any more, and an order that
/// waited only for this piece is handed on. The caller calls left_flight(). Called under the state
/// mutex.
void work_ends(Execution& member, Effects& effects);

/// Whether a procedure may hold locks only because it had work outstanding.
enum class Kept : std::uint8_t { kNo, kMaybe };

/// The last work of `execution` has ended, or a run after which it stays was published. If no work
/// is outstanding, locks that it kept only for its work are given back.
void work_looked_after(EngineCore& core, Execution& execution, Kept locks, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// `execution` goes on after a restart, or in a domain that was stopped: if it has kept locks only
/// for work that is gone by now, gives them back. True: a record does that, and the execution does
/// what is left to do when that record is published.
[[nodiscard]] bool gives_back_kept_locks(EngineCore& core, Execution& execution, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Commits a record that gives the locks of `execution` back. It is in flight until the record is
/// published; then it goes on waiting, or stands still if its domain is stopped.
void give_back_locks(EngineCore& core, Execution& execution, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// `last_order`, an order that ends everything under its head, is durable. True: a member under the
/// head has work outstanding, and the head keeps the order, to be published when that work has
/// ended. Called under the state mutex.
[[nodiscard]] bool waits_for_work(StepCommit& last_order);

}  // namespace pv2
