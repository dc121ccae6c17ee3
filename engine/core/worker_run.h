// SPDX-License-Identifier: Apache-2.0
//
// WorkerRun: what one worker polled at once and has not handed over: procedures whose step has yet
// to run, and the records of those whose step has. Running several before their records are handed
// over pays the locks of scheduler and store once. The price would be that a step which takes long
// holds up all others of its run; so a worker that has nothing to do takes them away from here. And
// that what happens meanwhile comes too late; so before each step the worker looks at RunMarks.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/ids.h>
#include <pv2/base/mutex.h>
#include <pv2/scheduler/procedure_scheduler.h>
#include <pv2/store/commit_request.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "model/execution.h"
#include "model/requests.h"

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

/// What a worker had seen when it took a run. As long as it would see the same, what it has taken
/// may begin.
struct RunMarks {
  std::uint64_t recalls = 0;  ///< EngineCore::recalls.
  std::uint64_t lifts = 0;    ///< ProcedureScheduler::lifts().
};

/// fill(), next() and is_active() are the worker's; the rest is anybody's. Thread-safe.
class alignas(64) WorkerRun {
 public:
  /// How many procedures a worker polls at once.
  static constexpr std::size_t kMost = 64;
  using Jobs = std::span<StepJob, kMost>;
  enum class Work : std::uint8_t { kAny, kTop };

  /// A new run; the one before has been handed over. `work` kTop: reserved workers may help.
  void fill(std::span<StepJob> jobs, RunMarks marks, Work work) PV2_EXCLUDES(run_mutex_) {
    PV2_ASSERT(jobs.size() <= kMost, "a run is no longer than what is polled at once");
    MutexLock lock(run_mutex_);
    PV2_ASSERT(begun_ == taken_ && finished_count_ == 0, "a run ends before the next one begins");
    active_ = true;
    marks_ = marks;
    work_ = work;
    begun_ = 0;
    taken_ = jobs.size();
    for (std::size_t i = 0; i < taken_; ++i) {
      PV2_ASSERT(jobs[i].execution != nullptr && jobs[i].commit != nullptr,
                 "a job is a procedure and the record that its step fills");
      ids_[i] = jobs[i].execution->id;
      jobs_[i] = jobs[i];
    }
  }

  /// What the worker does now.
  struct Next {
    std::optional<StepJob> job;  ///< None: the run is over, or has to be looked through first.
    bool recalled = false;       ///< Something of it may not begin any more: sift() it.
    bool overtaken = false;      ///< Something more urgent waits: all of it goes back.
    bool others_wait = false;    ///< There are more after it.
    bool others_ended = false;   ///< There are records to be handed over.
  };
  /// Notes the result of the step before, if there was one and its tree still runs, and says which
  /// procedure is next. `recalls` and `scheduler` say how things are now. The first step of a run
  /// is never overtaken: so each poll gets something on, however much that is urgent arrives.
  Next next(StepCommit* ended, std::uint64_t recalls, const ProcedureScheduler& scheduler)
      PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    if (ended != nullptr) {
      (ended->needs_record ? finished_.with_record : finished_.without_record).push_back(*ended);
      PV2_ASSERT(finished_count_ < kMost, "no more steps end than were taken");
      finished_ids_[finished_count_++] = ended->execution->id;
    }
    Next next;
    PV2_ASSERT(begun_ <= taken_, "no step begins that was not taken");
    active_ = begun_ != taken_;
    if (active_) {
      next.recalled = recalls != marks_.recalls;
      next.overtaken =
          begun_ != 0 && scheduler.is_overtaken(*jobs_[begun_].execution, marks_.lifts);
      if (!next.recalled && !next.overtaken) next.job = jobs_[begun_++];
    }
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
    return take_finished_locked();
  }

  /// What a worker without work of its own gets here.
  struct Help {
    FinishedSteps finished;  ///< To be handed over by whoever helps.
    std::size_t jobs = 0;    ///< So many of `jobs` are now those of whoever helps, to be run.
    RunMarks marks;          ///< What had been seen when they were polled.
    Work work = Work::kAny;
  };
  /// Takes away what has ended, and the later half of those that wait, at least one if there are
  /// any. Nothing if `work` is kTop and this run is not.
  Help help_out(Jobs jobs, Work work) PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    Help help;
    if (work == Work::kTop && work_ != Work::kTop) return help;
    help.finished = take_finished_locked();
    PV2_ASSERT(begun_ <= taken_, "no step begins that was not taken");
    help.jobs = (taken_ - begun_ + 1) / 2;
    help.marks = marks_;
    help.work = work_;
    for (std::size_t i = 0; i < help.jobs; ++i) jobs[i] = jobs_[taken_ - help.jobs + i];
    taken_ -= help.jobs;
    PV2_ASSERT(begun_ <= taken_, "who helps takes what has not begun");
    return help;
  }

  /// Takes away those that wait and are not to stay, in their order; returns how many. What stays
  /// was looked at when `recalls` was so.
  template <class Stays>
  std::size_t sift(Jobs jobs, std::uint64_t recalls, const Stays& stays) PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    marks_.recalls = recalls;
    std::size_t count = 0;
    std::size_t kept = begun_;
    for (std::size_t i = begun_; i < taken_; ++i) {
      if (!stays(*jobs_[i].execution)) {
        jobs[count++] = jobs_[i];
        continue;
      }
      jobs_[kept] = jobs_[i];
      ids_[kept++] = ids_[i];
    }
    PV2_ASSERT(kept + count == taken_, "what waits stays or is taken away");
    taken_ = kept;
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
  FinishedSteps take_finished_locked() PV2_REQUIRES(run_mutex_) {
    finished_count_ = 0;
    return std::exchange(finished_, {});
  }

  mutable Mutex run_mutex_;
  std::array<StepJob, kMost> jobs_ PV2_GUARDED_BY(run_mutex_);
  std::array<ProcedureId, kMost> ids_ PV2_GUARDED_BY(run_mutex_);
  std::array<ProcedureId, kMost> finished_ids_ PV2_GUARDED_BY(run_mutex_);
  RunMarks marks_ PV2_GUARDED_BY(run_mutex_);
  Work work_ PV2_GUARDED_BY(run_mutex_) = Work::kAny;
  bool active_ PV2_GUARDED_BY(run_mutex_) = false;
  std::size_t begun_ PV2_GUARDED_BY(run_mutex_) = 0;
  std::size_t taken_ PV2_GUARDED_BY(run_mutex_) = 0;
  std::size_t finished_count_ PV2_GUARDED_BY(run_mutex_) = 0;
  FinishedSteps finished_ PV2_GUARDED_BY(run_mutex_);
};

}  // namespace pv2
