// SPDX-License-Identifier: Apache-2.0
//
// Offloads: starts offloaded work, runs it on the pool, and does what its procedure waited with
// until its end. The rule: a member does not leave while it has work outstanding. So
//
//   - it counts as in flight, and the rollback of its tree begins when its work has ended;
//   - the record after which it would leave (its success, the end of an undo) is held back, and
//     goes to the store when the work has ended;
//   - a lock that it would give back in a wait or a back-off is given back when the work has ended.
//
// Work is outstanding from offload() until the callable has returned and was destroyed.

#pragma once

#include <pv2/base/mutex.h>

#include <memory>
#include <vector>

#include "engine_core.h"
#include "outstanding_work.h"
#include "publisher.h"
#include "tree_walk.h"

namespace pv2 {

/// Whether it has work that has not ended.
[[nodiscard]] inline bool has_work(const Execution& execution) noexcept {
  return execution.work != nullptr && !execution.work->pieces.empty();
}

/// Whether a procedure may still hold locks that it kept for its work.
enum class Kept : std::uint8_t { kNo, kMaybe };

/// Of the domain of `head` and of those within it, whoever has such work.
template <class Visit>
void for_each_at_work(Execution& head, Visit visit) {
  (void)find_within(head.root->domain.at_work, head, [&](Execution& member) {
    PV2_ASSERT(has_work(member), "who is said to have work outstanding has some");
    visit(member);
    return false;
  });
}

/// Its last work has ended, or a run of a step was published after which it stays: locks that it
/// kept only for its work are given back if that has ended.
void work_looked_after(EngineCore& core, Execution& execution, Kept locks, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// An order that ends what is under its head is durable. True: somebody of it has work outstanding,
/// and the order is kept until that has ended.
[[nodiscard]] bool waits_for_work(StepCommit& last_order);

/// Thread-safe.
class Offloads {
 public:
  Offloads(EngineCore& core, Publisher& publisher) : core_(core), publisher_(publisher) {}

  /// Whether work for this place may start now. If not, the step is woken when it may be so.
  bool may_start(Execution& execution, const PlaceOfWork& place) PV2_EXCLUDES(core_.state_mutex);
  /// Gives a piece to the pool; why not, if there are too many. By whoever has it in flight.
  Status start(Execution& execution, const PlaceOfWork& place,
               std::unique_ptr<internal::OffloadedWork> work) PV2_EXCLUDES(core_.state_mutex);
  /// Keeps the record of a run if its procedure would leave with it while work is outstanding; it
  /// is moved away then.
  void hold_back(std::unique_ptr<StepCommit>& commit) PV2_EXCLUDES(core_.state_mutex);
  /// Nobody will take the values of what this visit has outstanding any more.
  void stop(Execution& execution, const PlaceOfWork& visit) PV2_EXCLUDES(core_.state_mutex);
  /// Has those told that are to stop, on the pool.
  void tell_later() PV2_EXCLUDES(core_.state_mutex);
  /// The executor stops: so is what runs and what will.
  void stop_all() PV2_EXCLUDES(running_mutex_);

  /// What runs now, in the order in which it began.
  [[nodiscard]] std::vector<std::shared_ptr<PieceOfWork>> running() const
      PV2_EXCLUDES(running_mutex_);

 private:
  void run(const std::shared_ptr<PieceOfWork>& piece);
  void tell();
  void ended(PieceOfWork& piece);

  EngineCore& core_;
  Publisher& publisher_;

  mutable Mutex running_mutex_;
  std::vector<std::shared_ptr<PieceOfWork>> running_ PV2_GUARDED_BY(running_mutex_);
  bool stopping_ PV2_GUARDED_BY(running_mutex_) = false;
};

}  // namespace pv2
