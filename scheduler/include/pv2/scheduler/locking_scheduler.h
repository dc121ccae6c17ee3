// SPDX-License-Identifier: Apache-2.0
//
// LockingScheduler: the common part of pv2's schedulers. It owns the lock table, keeps entries that
// wait for a lock off the queues, grants locks in order of arrival, and wakes as many sleeping
// workers as there is new work. The ReadyQueue, which each kind of scheduler brings, orders the
// entries that can run.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/mutex.h>
#include <pv2/base/status.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "pv2/scheduler/procedure_scheduler.h"
#include "pv2/scheduler/scheduler_entry.h"

namespace pv2 {

class LockTable;
class ReadyQueue;
class SeatTurns;
struct ReadyPlace;
struct WaitSearch;
enum class ReadySection : std::uint8_t;

/// How many waiters, holders and keys of lock sets the scheduler has looked at under its mutex.
struct SchedulerLooks {
  std::uint64_t total = 0;
  std::uint64_t section_max = 0;  ///< In one critical section.
};

/// How full the queues of a scheduler are, and how its workers sleep.
struct SchedulerCounts {
  std::size_t queued = 0;    ///< In a queue, runnable or waiting for a lock.
  std::size_t runnable = 0;  ///< Could be polled at once.
  std::size_t sleeping = 0;  ///< Workers asleep in poll() and not signalled yet.
  std::uint64_t wakes = 0;   ///< Signals ever sent to sleeping workers.
};

/// Thread-safe. It calls nothing but its clock, and that outside its mutex.
class LockingScheduler : public ProcedureScheduler {
 public:
  ~LockingScheduler() override;
  LockingScheduler(const LockingScheduler&) = delete;
  LockingScheduler& operator=(const LockingScheduler&) = delete;

  using ProcedureScheduler::admit;
  void admit(EntryList&& batch) override PV2_EXCLUDES(queues_mutex_);
  [[nodiscard]] bool contended(const SchedulerEntry& entry) const override
      PV2_EXCLUDES(queues_mutex_);
  std::vector<NotRestored> restore(EntryList&& batch) override PV2_EXCLUDES(queues_mutex_);
  using ProcedureScheduler::settle;
  std::size_t settle(EntryList&& batch, SchedulerCaller caller) override
      PV2_EXCLUDES(queues_mutex_);
  using ProcedureScheduler::poll;
  std::size_t poll(std::span<SchedulerEntry*> run, std::chrono::milliseconds patience,
                   SchedulerCaller caller) override PV2_EXCLUDES(queues_mutex_);
  std::size_t poll_top(std::span<SchedulerEntry*> run, std::chrono::milliseconds patience) override
      PV2_EXCLUDES(queues_mutex_);
  void wake_for_ready() override PV2_EXCLUDES(queues_mutex_);
  void nudge() override PV2_EXCLUDES(queues_mutex_);
  void nudge_top() override PV2_EXCLUDES(queues_mutex_);
  [[nodiscard]] std::uint64_t lifts() const noexcept override;
  [[nodiscard]] bool is_overtaken(const SchedulerEntry& polled,
                                  std::uint64_t lifts_then) const noexcept override;
  [[nodiscard]] bool has_ready() const noexcept override;
  [[nodiscard]] bool has_top_classes() const noexcept override;
  [[nodiscard]] bool is_top_work(const SchedulerEntry& polled) const noexcept override;
  bool withdraw(SchedulerEntry& entry) override PV2_EXCLUDES(queues_mutex_);
  void stop() override PV2_EXCLUDES(queues_mutex_);
  void set_limit(const ResourceKey& key, std::optional<std::uint32_t> limit) override
      PV2_EXCLUDES(queues_mutex_);
  void report_wait(SchedulerEntry& waiter, SchedulerEntry& producer, WaitLink::Why why) override
      PV2_EXCLUDES(queues_mutex_);
  void end_reported_wait(SchedulerEntry& waiter) override PV2_EXCLUDES(queues_mutex_);
  [[nodiscard]] bool suspects_cycles() const noexcept override;
  void search_cycles() override PV2_EXCLUDES(queues_mutex_);
  [[nodiscard]] bool has_new_cycles() const noexcept override;
  [[nodiscard]] std::vector<WaitCycle> take_new_cycles() override PV2_EXCLUDES(queues_mutex_);
  [[nodiscard]] std::vector<WaitCycle> cycles() const override PV2_EXCLUDES(queues_mutex_);
  [[nodiscard]] QueuePlace place_of(const SchedulerEntry& entry, std::size_t most) const override
      PV2_EXCLUDES(queues_mutex_);
  [[nodiscard]] std::vector<LockInfo> locks() const override PV2_EXCLUDES(queues_mutex_);
  /// How full the queues are, and how often workers were signalled. For tests.
  [[nodiscard]] SchedulerCounts counts() const PV2_EXCLUDES(queues_mutex_);
  /// What the calls cost, counted: tests compare it with the number of waiters.
  [[nodiscard]] SchedulerLooks looks() const PV2_EXCLUDES(queues_mutex_);
  /// Ends the process if a count or a link is wrong. For tests: it looks at all entries in one
  /// critical section.
  void check_invariants() const PV2_EXCLUDES(queues_mutex_);

 protected:
  /// `clock` dates holds and waits; it outlives the scheduler.
  LockingScheduler(std::unique_ptr<ReadyQueue> ready, const Clock& clock);

 private:
  /// Workers that sleep in one of the two kinds of poll().
  struct Sleepers {
    std::size_t asleep = 0;  ///< Not signalled yet.
    /// Signals sent and not consumed by a worker yet; each stands for one worker already taken off
    /// `asleep`.
    std::size_t tokens = 0;
    bool nudged = false;  ///< One sleeper, or the next worker that would sleep, returns 0.
  };
  /// How many sleepers of each kind to signal after a critical section.
  struct Wakes {
    std::size_t any = 0;
    std::size_t top = 0;
    std::size_t own = 0;  ///< Entries for which the caller needs no other worker.
  };
  enum class Work : std::uint8_t { kAny, kTop };
  /// Holds the mutex for a scope, and counts what is looked at in it.
  class PV2_SCOPED_CAPABILITY Section {
   public:
    explicit Section(const LockingScheduler& scheduler) PV2_ACQUIRE(scheduler.queues_mutex_);
    ~Section() PV2_RELEASE();
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    const LockingScheduler& scheduler_;
    std::uint64_t before_ = 0;
  };

  void know(SchedulerEntry& entry) PV2_REQUIRES(queues_mutex_);
  void meet(SchedulerEntry& entry) PV2_REQUIRES(queues_mutex_);
  void apply(SchedulerEntry& entry, SteadyTime now) PV2_REQUIRES(queues_mutex_);
  void enqueue(SchedulerEntry& entry, ReadySection section, SteadyTime now)
      PV2_REQUIRES(queues_mutex_);
  void unlock(SchedulerEntry& entry, SteadyTime now) PV2_REQUIRES(queues_mutex_);
  void push_ready(SchedulerEntry& entry, ReadySection section) PV2_REQUIRES(queues_mutex_);
  void put_back(SchedulerEntry& entry) PV2_REQUIRES(queues_mutex_);
  void count_ready(const SchedulerEntry& entry) PV2_REQUIRES(queues_mutex_);
  /// Where `entry`, which is ready, stands.
  [[nodiscard]] static ReadyPlace ready_place(const SchedulerEntry& entry);
  void leave_ready(SchedulerEntry& entry) PV2_REQUIRES(queues_mutex_);
  bool note_urgency() PV2_REQUIRES(queues_mutex_);
  void nudge(Work work) PV2_EXCLUDES(queues_mutex_);
  void place_changed() PV2_REQUIRES(queues_mutex_);
  void show_cycles() const PV2_REQUIRES(queues_mutex_);
  void copy_waits(WaitSearch& search) const PV2_EXCLUDES(queues_mutex_);
  void confirm_limits(WaitSearch& search) const PV2_EXCLUDES(queues_mutex_);
  std::size_t poll_for(Work work, std::span<SchedulerEntry*> run,
                       std::chrono::milliseconds patience, SchedulerCaller caller)
      PV2_EXCLUDES(queues_mutex_);
  std::size_t take(Work work, std::span<SchedulerEntry*> run, SchedulerCaller caller)
      PV2_REQUIRES(queues_mutex_);
  template <class Prepare, class Part>
  void in_sections(Prepare prepare, Part part) const PV2_EXCLUDES(queues_mutex_);
  [[nodiscard]] Wakes claim_sleepers(std::size_t own = 0) PV2_REQUIRES(queues_mutex_);
  void signal(const Wakes& wakes);
  void serve_rest(std::uint64_t looks_before) PV2_REQUIRES(queues_mutex_);
  [[nodiscard]] bool claim_one_for_ready() PV2_REQUIRES(queues_mutex_);

  const Clock& clock_;
  const std::size_t top_class_floor_;  ///< The lowest class, by rank, that is a top class.
  mutable Mutex queues_mutex_;
  const std::unique_ptr<LockTable> table_ PV2_PT_GUARDED_BY(queues_mutex_);
  const std::unique_ptr<ReadyQueue> ready_ PV2_PT_GUARDED_BY(queues_mutex_);
  const std::unique_ptr<SeatTurns> turns_ PV2_PT_GUARDED_BY(queues_mutex_);
  /// That of the caller of settle(); in all other sections the common one.
  std::uint8_t seat_here_ PV2_GUARDED_BY(queues_mutex_) = 0;
  CondVar work_arrived_;
  CondVar top_work_arrived_;
  Sleepers any_ PV2_GUARDED_BY(queues_mutex_);
  Sleepers top_ PV2_GUARDED_BY(queues_mutex_);
  std::size_t queued_ PV2_GUARDED_BY(queues_mutex_) = 0;
  std::size_t runnable_ PV2_GUARDED_BY(queues_mutex_) = 0;
  std::uint64_t wakes_ PV2_GUARDED_BY(queues_mutex_) = 0;
  mutable std::uint64_t section_looks_max_ PV2_GUARDED_BY(queues_mutex_) = 0;
  /// Entries that became runnable in this critical section: it may wake as many workers.
  std::size_t fresh_ PV2_GUARDED_BY(queues_mutex_) = 0;
  /// Those of them that are work of the top classes.
  std::size_t fresh_top_ PV2_GUARDED_BY(queues_mutex_) = 0;
  /// Entries that were runnable and became work of the top classes.
  std::size_t lifted_to_top_ PV2_GUARDED_BY(queues_mutex_) = 0;
  bool stopped_ PV2_GUARDED_BY(queues_mutex_) = false;
  /// Hints to look under the mutex; no data is published through them.
  mutable std::atomic<bool> new_cycles_{false};
  mutable std::atomic<bool> suspects_cycles_{false};
  /// A hint too: in the low 16 bits the highest class, by rank, that could run; above them lifts().
  std::atomic<std::uint64_t> urgency_{0};
  std::atomic<bool> has_ready_{false};  ///< A hint: whether a poll has something to do.
};

}  // namespace pv2
