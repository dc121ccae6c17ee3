// SPDX-License-Identifier: Apache-2.0
//
// Offloads: starts offloaded work, runs it on the pool, tells it to stop, and holds back the record
// after which its procedure would leave (its success, the end of an undo): that record goes to the
// store when the work has ended. What else waits for the work is in members_at_work.h.
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
  /// Gives a piece of work to the pool. kResourceExhausted: the procedure has too many. Called by
  /// the worker that has the procedure in flight.
  Status start(Execution& execution, const PlaceOfWork& place,
               std::unique_ptr<internal::OffloadedWork> work) PV2_EXCLUDES(core_.state_mutex);
  /// Takes the record of a run, and keeps it until the work has ended, if its procedure would leave
  /// with it while work is outstanding.
  void hold_back(std::unique_ptr<StepCommit>& commit) PV2_EXCLUDES(core_.state_mutex);
  /// Nobody takes the values any more of the work that this visit has outstanding: that work is
  /// told to stop.
  void stop(Execution& execution, const PlaceOfWork& visit) PV2_EXCLUDES(core_.state_mutex);
  /// Has the pool tell the work that is noted in EngineState::work_to_stop.
  void tell_later() PV2_EXCLUDES(core_.state_mutex);
  /// The executor stops: tells the work that runs, and the work that will run.
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
