// SPDX-License-Identifier: Apache-2.0
//
// Offloads: starts offloaded work, runs it on the pool, and tells it to stop. A record with which a
// procedure would leave (its success, the end of an undo) is held back until the procedure has no
// work outstanding. members_at_work.h says what else waits for the work.
//
// Work is outstanding from offload() until the callable has returned and was destroyed.

#pragma once

#include <pv2/base/mutex.h>

#include <memory>
#include <vector>

#include "core/engine_core.h"
#include "core/publisher.h"
#include "model/outstanding_work.h"

namespace pv2 {

/// Thread-safe.
class Offloads {
 public:
  Offloads(EngineCore& core, Publisher& publisher) : core_(core), publisher_(publisher) {}

  /// Whether work for this place may start now. If not, the step is woken when it may.
  bool may_start(Execution& execution, const PlaceOfWork& place) PV2_EXCLUDES(core_.state_mutex);
  /// Gives a piece of work to the pool. kResourceExhausted: the procedure has too many pieces
  /// outstanding. Called by the worker that has the procedure in flight. Without memory the process
  /// ends here: a step that goes on would not know whether its work runs.
  Status start(Execution& execution, const PlaceOfWork& place,
               std::unique_ptr<internal::OffloadedWork> work) noexcept
      PV2_EXCLUDES(core_.state_mutex);
  /// If the procedure would leave with this record while it has work outstanding, takes the record
  /// and keeps it until the work has ended.
  void hold_back(std::unique_ptr<StepCommit>& commit) PV2_EXCLUDES(core_.state_mutex);
  /// Tells the outstanding work of this visit to stop, because no step takes its values any more.
  void stop(Execution& execution, const PlaceOfWork& visit) PV2_EXCLUDES(core_.state_mutex);
  /// Lets the pool tell the work in Leftovers::work to stop. Called once for each
  /// Leftovers::claim_work_task().
  void tell_later() PV2_EXCLUDES(core_.state_mutex);
  /// The executor stops: tells the running work, and all work that begins later, to stop.
  void stop_all() PV2_EXCLUDES(running_mutex_);

  /// The work that runs now, in the order in which it began.
  [[nodiscard]] std::vector<std::shared_ptr<PieceOfWork>> running() const
      PV2_EXCLUDES(running_mutex_);

 private:
  [[nodiscard]] std::shared_ptr<PieceOfWork> make_piece(
      const Execution& execution, const PlaceOfWork& place,
      std::unique_ptr<internal::OffloadedWork> work) const;
  [[nodiscard]] Status add(Execution& execution, const std::shared_ptr<PieceOfWork>& piece)
      PV2_EXCLUDES(core_.state_mutex);
  void run(const std::shared_ptr<PieceOfWork>& piece);
  void tell();
  void ended(PieceOfWork& piece);
  [[nodiscard]] std::unique_ptr<StepCommit> last_ended(Execution& execution, Effects& effects)
      PV2_REQUIRES(core_.state_mutex);

  EngineCore& core_;
  Publisher& publisher_;

  mutable Mutex running_mutex_;
  std::vector<std::shared_ptr<PieceOfWork>> running_ PV2_GUARDED_BY(running_mutex_);
  bool stopping_ PV2_GUARDED_BY(running_mutex_) = false;
};

}  // namespace pv2
