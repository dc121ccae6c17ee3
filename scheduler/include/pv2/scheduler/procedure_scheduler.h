// SPDX-License-Identifier: Apache-2.0
//
// ProcedureScheduler: decides who runs next and who holds which locks. Everything happens in
// batches under one short mutex: workers poll a run of entries, and whoever publishes a batch of
// outcomes settles them in one call. It calls no user code and no store, and it never waits for
// anything but its own queues.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/resource.h>
#include <pv2/base/status.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pv2/scheduler/queue_place.h"
#include "pv2/scheduler/scheduler_entry.h"
#include "pv2/scheduler/wait_cycle.h"

namespace pv2 {

/// One key of the lock table, as operators see it.
struct LockInfo {
  struct Party {
    ProcedureId id;
    LockMode mode = LockMode::kShared;
    SteadyTime since;  ///< Holding or waiting since.
    std::string type;  ///< Of the procedure; empty unless who lists it knows types.
  };
  ResourceKey key;
  std::optional<std::uint32_t> limit;  ///< At most so many may hold it at once.
  std::vector<Party> holders;
  std::vector<Party> waiters;  ///< In the order in which they will be served.
};

/// How far the queues are filled.
struct SchedulerStats {
  std::size_t queued = 0;    ///< In a queue, runnable or waiting for a lock.
  std::size_t runnable = 0;  ///< Could be polled at once.
  std::uint64_t polls = 0;
  std::uint64_t empty_polls = 0;
  std::size_t sleeping = 0;  ///< Workers asleep in poll() that nobody has signalled yet.
  std::uint64_t wakes = 0;   ///< Signals ever sent to sleeping workers.
};

/// Thread-safe, all of it.
class ProcedureScheduler {
 public:
  virtual ~ProcedureScheduler() = default;

  /// Takes note of `entry` and grants its lock set at once if it is free (or covered by an
  /// ancestor) and nobody is ahead. Returns whether the locks are held now (true for an empty set).
  /// It is not queued: a settle() follows when its record is durable.
  virtual bool admit(SchedulerEntry& entry) = 0;

  /// Tries again for a parked entry that holds nothing: before the record of a step whose successor
  /// needs the locks, or to undo a finished child.
  virtual bool try_lock(SchedulerEntry& entry) = 0;

  /// Whether somebody waits for what `entry` holds, so that an entry which needs its locks only
  /// step by step should give way. False: it may keep them for its next step, and the grant for
  /// that step rides on the record of this one. An answer that a later arrival makes wrong costs
  /// that arrival one step.
  [[nodiscard]] virtual bool contended(const SchedulerEntry& entry) const = 0;

  /// Like admit(), for an entry whose record says that it held its locks: called at load, ancestors
  /// first, then by id, before anything is queued. A failure names the key and who has it; nothing
  /// is taken.
  virtual Status restore(SchedulerEntry& entry) = 0;

  /// Does with each entry of the batch what its disposition says, in order, in one critical
  /// section; wakes as many sleeping workers as there is new work for, and none that is busy.
  virtual void settle(EntryList&& batch) = 0;

  /// Fills `run` with entries that can run, all of one class, each holding its lock set, and
  /// returns how many: no more than its share if others wait in poll(). Waits at most `patience`
  /// (real time) when there are none; 0 after that, after nudge(), or after stop(). An entry whose
  /// locks were granted here, not by admit(), has `granted_by_poll()` true: that grant has to be
  /// made durable before its step runs.
  virtual std::size_t poll(std::span<SchedulerEntry*> run, std::chrono::milliseconds patience) = 0;

  /// The same, but only work of the top classes, or work that the top classes wait for: for workers
  /// that are reserved for it. Sleeps while there is none, whatever else could run.
  virtual std::size_t poll_top(std::span<SchedulerEntry*> run,
                               std::chrono::milliseconds patience) = 0;

  /// Makes one poll() of those that wait for any work return 0 before its patience ends; if none
  /// waits, the next one that would. For workers that can help each other.
  virtual void nudge() = 0;

  /// The same for one poll_top().
  virtual void nudge_top() = 0;

  /// How often an entry that is polled was lent a higher class than it was polled in, because
  /// something of that class began to wait for it. A mark for is_overtaken(), to be taken before
  /// the poll.
  [[nodiscard]] virtual std::uint64_t lifts() const noexcept = 0;
  /// Whether `polled`, which its poll() returned and whose step has not begun, should be returned
  /// (kReturn) because there is work of a class above the one that it was polled in: such work can
  /// run, or since `lifts_then` some began to wait for a polled entry. Work of a higher priority in
  /// the same class is no reason. Costs one load and no mutex, so what another thread does at the
  /// same moment may be missed; what happened before is not.
  [[nodiscard]] virtual bool is_overtaken(const SchedulerEntry& polled,
                                          std::uint64_t lifts_then) const noexcept = 0;
  /// Whether `polled` was polled as work of the top classes, so that a reserved worker may run it.
  [[nodiscard]] virtual bool is_top_work(const SchedulerEntry& polled) const noexcept = 0;

  /// Takes a queued entry out of its queue and leaves it parked: with its locks if it held them
  /// when it was queued, without them if it was still waiting or got them in the queue (no record
  /// says so). False, and nothing happens, if it is not queued: parked, or taken by a worker.
  virtual bool withdraw(SchedulerEntry& entry) = 0;

  /// Wakes everybody; poll() returns 0 from now on.
  virtual void stop() = 0;

  /// At most `limit` entries may hold `key` at once, in whatever mode; a tree counts once, through
  /// the first of it. nullopt: any number. Those who hold more than that already keep it. 0 lets
  /// nobody begin.
  virtual void set_limit(const ResourceKey& key, std::optional<std::uint32_t> limit) = 0;

  /// Says that `waiter` goes on only after something that `producer` has to do: kReported for an
  /// event with a known producer; kTurn for its turn in a rollback, where `producer` is the head of
  /// what is undone together (a root, or a descendant that fails by itself) and an ancestor of
  /// `waiter`. At most one at a time; it ends with either of the two, or when it is said.
  /// Meanwhile whoever stands in a line, the head or below it, is taken to be in his turn.
  virtual void report_wait(SchedulerEntry& waiter, SchedulerEntry& producer, WaitLink::Why why) = 0;
  virtual void end_reported_wait(SchedulerEntry& waiter) = 0;

  /// Whether a wait has begun since the last search began that may have closed a cycle. Costs one
  /// load.
  [[nodiscard]] virtual bool suspects_cycles() const noexcept = 0;
  /// Looks for cycles, if any is suspected. It goes through those who may be in one and through
  /// those before them in their lines, each once, and others work meanwhile. A cycle that stood
  /// when this began, and stands when it ends, is found. Of cycles that share a member it finds
  /// one; another is suspected when that one is opened.
  virtual void search_cycles() = 0;
  /// Whether a cycle was found that nobody has taken yet. Costs one load.
  [[nodiscard]] virtual bool has_new_cycles() const noexcept = 0;
  /// The cycles that were found since this was last asked, and that stand.
  [[nodiscard]] virtual std::vector<WaitCycle> take_new_cycles() = 0;
  /// Cycles that there are now, at most 64: each stood at a moment during the call, and whoever is
  /// in one during all of it is in one of those listed. Others work meanwhile.
  [[nodiscard]] virtual std::vector<WaitCycle> cycles() const = 0;

  /// Where `entry`, which is known to the scheduler, stands, with at most `most` of those that it
  /// waits for. Short, however many stand there.
  [[nodiscard]] virtual QueuePlace place_of(const SchedulerEntry& entry,
                                            std::size_t most) const = 0;

  /// Every key that is held, waited for or limited, with all holders and all waiters. Cheap enough
  /// to be asked every second, whatever waits: it is made in sections of 1024 keys and parties,
  /// between which others work. So each key with less than 1024 parties is as it was at one moment
  /// (keys at different ones); of longer ones, who holds or waits during the whole call is listed
  /// once and what came to be meanwhile may be missing.
  [[nodiscard]] virtual std::vector<LockInfo> locks() const = 0;
  [[nodiscard]] virtual SchedulerStats stats() const = 0;
};

}  // namespace pv2
