// SPDX-License-Identifier: Apache-2.0
//
// WorkerRun: what one worker polled at once and has not handed over: procedures whose step has yet
// to run, and the records of those whose step has. Running several before their records are handed
// over pays the locks of scheduler and store once. The price would be that a step which takes long
// holds up all others of its run; so a worker that has nothing to do takes them away from here.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/mutex.h>
#include <pv2/store/commit_request.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "execution.h"
#include "step_commit.h"

namespace pv2 {

/// A procedure that a worker has taken, and the record that its step will fill, which belongs to
/// whoever has the job. Plain, as there are arrays of them.
struct StepJob {
  Execution* execution = nullptr;
  StepCommit* commit = nullptr;
};

/// The results of steps: those that need a record, and those that are published without one.
struct FinishedSteps {
  CommitList with_record;
  CommitList without_record;

  [[nodiscard]] bool empty() const noexcept {
    return with_record.empty() && without_record.empty();
  }
};

/// fill(), next() and is_active() are the worker's; the rest is anybody's. Thread-safe.
class alignas(64) WorkerRun {
 public:
  /// How many procedures a worker polls at once.
  static constexpr std::size_t kMost = 64;

  /// A new run; the one before has been handed over.
  void fill(std::span<StepJob> jobs) PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    active_ = true;
    begun_ = 0;
    taken_ = jobs.size();
    for (std::size_t i = 0; i < taken_; ++i) {
      ids_[i] = jobs[i].execution->id;
      jobs_[i] = jobs[i];
    }
  }

  /// What the worker does now.
  struct Next {
    std::optional<StepJob> job;  ///< None: the run is over.
    bool others_wait = false;    ///< There are more after it.
    bool others_ended = false;   ///< There are records to be handed over.
  };
  /// Notes the result of the step before, if there was one and its tree still runs, and says which
  /// procedure is next.
  Next next(StepCommit* ended) PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    if (ended != nullptr) {
      (ended->needs_record ? finished_.with_record : finished_.without_record).push_back(*ended);
      finished_ids_[finished_count_++] = ended->execution->id;
    }
    Next next;
    active_ = begun_ != taken_;
    if (active_) next.job = jobs_[begun_++];
    next.others_wait = begun_ != taken_;
    next.others_ended = finished_count_ != 0;
    return next;
  }

  /// From fill() until next() has said that the run is over.
  [[nodiscard]] bool is_active() const PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    return active_;
  }

  /// The records that wait to be handed over; the caller does that.
  FinishedSteps take_finished() PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    finished_count_ = 0;
    return std::exchange(finished_, {});
  }

  /// Takes away the later half of those that wait, at least one if there are any; returns how many.
  std::size_t take_waiting(std::span<StepJob, kMost> jobs) PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    const std::size_t count = (taken_ - begun_ + 1) / 2;
    for (std::size_t i = 0; i < count; ++i) jobs[i] = jobs_[taken_ - count + i];
    taken_ -= count;
    return count;
  }

  enum class Place { kNone, kWaiting, kFinished };
  /// Where in this run `id` is; a step that runs is in neither place.
  [[nodiscard]] Place place_of(ProcedureId id) const PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    for (std::size_t i = begun_; i < taken_; ++i) {
      if (ids_[i] == id) return Place::kWaiting;
    }
    for (std::size_t i = 0; i < finished_count_; ++i) {
      if (finished_ids_[i] == id) return Place::kFinished;
    }
    return Place::kNone;
  }

 private:
  mutable Mutex run_mutex_;
  std::array<StepJob, kMost> jobs_ PV2_GUARDED_BY(run_mutex_);
  std::array<ProcedureId, kMost> ids_ PV2_GUARDED_BY(run_mutex_);
  std::array<ProcedureId, kMost> finished_ids_ PV2_GUARDED_BY(run_mutex_);
  bool active_ PV2_GUARDED_BY(run_mutex_) = false;
  std::size_t begun_ PV2_GUARDED_BY(run_mutex_) = 0;
  std::size_t taken_ PV2_GUARDED_BY(run_mutex_) = 0;
  std::size_t finished_count_ PV2_GUARDED_BY(run_mutex_) = 0;
  FinishedSteps finished_ PV2_GUARDED_BY(run_mutex_);
};

}  // namespace pv2
