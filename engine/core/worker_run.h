// SPDX-License-Identifier: Apache-2.0
//
// WorkerRun: the procedures that one worker polled together and has not handed over: those whose
// step has not run yet, and the records of those whose step has. A worker runs several steps before
// it hands over their records, so it takes the locks of scheduler and store once for all of them.
// This has two prices. A long step delays the others of its run: an idle worker takes them away
// from here. And a procedure may be stopped or overtaken while it waits in a run: the worker
// compares RunMarks before each step.

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

/// A procedure that a worker has taken, and the record that its step will fill. The worker that has
/// the job owns the record. Plain pointers without an initial value, because each poll has an array
/// of jobs, of which it sets a few.
struct StepJob {
  Execution* execution;
  StepCommit* commit;
};

/// Procedures that a worker has taken and whose steps may begin: the jobs of its next run.
struct StepJobs {
  static constexpr std::size_t kMost = 64;

  std::array<StepJob, kMost> jobs;  ///< The first `count` are set.
  std::size_t count = 0;

  void add(StepJob job) {
    PV2_ASSERT(count < kMost, "a worker takes no more procedures than a run has room for");
    jobs[count++] = job;
  }
  [[nodiscard]] std::span<StepJob> all() { return std::span(jobs).first(count); }
};

/// The results of steps: those that need a record, and those that are published without one.
struct FinishedSteps {
  CommitList with_record;
  CommitList without_record;

  [[nodiscard]] bool empty() const noexcept {
    return with_record.empty() && without_record.empty();
  }
};

/// Two counters as a worker read them when it took a run. While they have the same values, the
/// steps of the run may begin.
struct RunMarks {
  std::uint64_t recalls = 0;  ///< EngineCore::recalls.
  std::uint64_t lifts = 0;    ///< ProcedureScheduler::lifts().
};

/// Thread-safe. fill(), next() and is_active() are called by the worker, the rest by any thread.
class alignas(64) WorkerRun {
 public:
  /// How many procedures a worker polls at once.
  static constexpr std::size_t kMost = StepJobs::kMost;
  using Jobs = std::span<StepJob, kMost>;
  enum class Work : std::uint8_t { kAny, kTop };

  /// Begins a new run; the last one has been handed over. With kTop, reserved workers may help. An
  /// idle worker may take a part of a `shared` run at once, and of any other one later.
  void fill(std::span<StepJob> jobs, RunMarks marks, Work work, bool shared)
      PV2_EXCLUDES(run_mutex_) {
    PV2_ASSERT(jobs.size() <= kMost, "a run has no more jobs than one poll returns");
    MutexLock lock(run_mutex_);
    PV2_ASSERT(begun_ == taken_ && finished_count_ == 0, "a run ends before the next one begins");
    active_ = true;
    shared_ = shared;
    ++number_;
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

  /// What the worker has to do next.
  struct Next {
    std::optional<StepJob> job;  ///< None: the run is over, recalled or overtaken.
    bool recalled = false;       ///< Some steps of it may not begin any more: sift() it.
    bool overtaken = false;      ///< A more urgent procedure waits: what has not begun goes back.
    bool has_records = false;    ///< Records are due: hand them over, then ask again.
    bool others_wait = false;    ///< Other procedures of the run have not begun.
  };
  /// Notes the record of the step before in `ended`, if there is one, and says which procedure is
  /// next. `recalls` and `scheduler` give the current values of the marks. The first step of a run
  /// is never overtaken, so each poll makes progress, however many urgent procedures arrive. If
  /// `are_due`, records of the run come first, and no job is chosen while there are some: to hand
  /// them over may change what may begin.
  Next next(StepCommit* ended, std::uint64_t recalls, const ProcedureScheduler& scheduler,
            bool are_due) PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    if (ended != nullptr) {
      (ended->needs_record ? finished_.with_record : finished_.without_record).push_back(*ended);
      PV2_ASSERT(finished_count_ < kMost, "a run has room for the steps that end");
      finished_ids_[finished_count_++] = ended->execution->id;
    }
    Next next;
    PV2_ASSERT(begun_ <= taken_, "a step that begins was taken");
    active_ = begun_ != taken_;
    next.has_records = active_ && are_due && finished_count_ != 0;
    if (active_ && !next.has_records) {
      next.recalled = recalls != marks_.recalls;
      next.overtaken =
          begun_ != 0 && scheduler.is_overtaken(*jobs_[begun_].execution, marks_.lifts);
      if (!next.recalled && !next.overtaken) next.job = jobs_[begun_++];
    }
    next.others_wait = begun_ != taken_;
    return next;
  }

  /// From fill() until next() has said that the run is over.
  [[nodiscard]] bool is_active() const PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    return active_;
  }

  /// Takes the records that wait to be handed over; the caller hands them over.
  FinishedSteps take_finished() PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    return take_finished_locked();
  }

  /// What an idle worker takes away from the run of another one.
  struct Help {
    FinishedSteps finished;  ///< The helper hands them over.
    std::size_t jobs = 0;    ///< How many of `jobs` the helper now has to run.
    RunMarks marks;          ///< The marks from when they were polled.
    Work work = Work::kAny;
    std::uint64_t number = 0;  ///< The run's, if something still waits in it; else 0.
  };
  /// Takes away the later half of the waiting jobs, at least one if there are any; and the finished
  /// steps, if the run is `seen`. Takes nothing from a run that is neither shared nor `seen`: short
  /// steps end before another worker could begin them. `seen` is the number that the helper got
  /// when it looked last. For reserved workers, every run of kTop counts as seen, and no other one
  /// is helped.
  Help help_out(Jobs jobs, Work work, std::uint64_t seen) PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    Help help;
    if (work == Work::kTop && work_ != Work::kTop) return help;
    const bool is_seen = work == Work::kTop || seen == number_;
    if (is_seen) help.finished = take_finished_locked();
    if (is_seen || shared_) {
      PV2_ASSERT(begun_ <= taken_, "a step that begins was taken");
      help.jobs = (taken_ - begun_ + 1) / 2;
      help.marks = marks_;
      help.work = work_;
      for (std::size_t i = 0; i < help.jobs; ++i) jobs[i] = jobs_[taken_ - help.jobs + i];
      taken_ -= help.jobs;
    }
    help.number = waits_locked() ? number_ : 0;
    return help;
  }

  /// The number of the run if jobs or records wait in it; else 0.
  [[nodiscard]] std::uint64_t number_if_something_waits() const PV2_EXCLUDES(run_mutex_) {
    MutexLock lock(run_mutex_);
    return waits_locked() ? number_ : 0;
  }

  /// Takes away the waiting jobs for which `stays` is false, in order, and returns their number.
  /// `recalls` becomes the mark of the jobs that stay.
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
    PV2_ASSERT(kept + count == taken_, "each waiting job stays or is taken away");
    taken_ = kept;
    return count;
  }

  enum class Place { kNone, kWaiting, kFinished };
  /// Where in this run `id` is. kNone also for a procedure whose step is running.
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
  // Whether jobs or records wait.
  [[nodiscard]] bool waits_locked() const PV2_REQUIRES(run_mutex_) {
    PV2_ASSERT(begun_ <= taken_, "a helper takes jobs that have not begun");
    return begun_ != taken_ || finished_count_ != 0;
  }
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
  bool shared_ PV2_GUARDED_BY(run_mutex_) = false;
  std::uint64_t number_ PV2_GUARDED_BY(run_mutex_) = 0;  ///< Of the run: 1 for the first.
  std::size_t begun_ PV2_GUARDED_BY(run_mutex_) = 0;
  std::size_t taken_ PV2_GUARDED_BY(run_mutex_) = 0;
  std::size_t finished_count_ PV2_GUARDED_BY(run_mutex_) = 0;
  FinishedSteps finished_ PV2_GUARDED_BY(run_mutex_);
};

}  // namespace pv2
