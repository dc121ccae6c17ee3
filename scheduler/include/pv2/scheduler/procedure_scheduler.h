// SPDX-License-Identifier: Apache-2.0
//
// ProcedureScheduler: decides which entry runs next and which entry holds which locks. Everything
// happens in batches, in short critical sections of one mutex: a worker polls a run of entries, and
// the thread that publishes a batch of outcomes settles them in one call. The scheduler calls no
// user code and no store, and it never waits for anything but its own queues.

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
#include <utility>
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
    std::string type;  ///< Of the procedure; empty unless the lister knows types.
  };
  ResourceKey key;
  std::optional<std::uint32_t> limit;  ///< How many may hold it at once.
  std::vector<Party> holders;
  std::vector<Party> waiters;  ///< In the order in which they will be served.
};

/// Who calls settle() or poll().
struct SchedulerCaller {
  /// How many of the entries that can run it takes itself: no other worker is needed for these.
  std::size_t own = 0;
  /// The number of a worker that calls poll() again and again, from 1: among equals it gets first
  /// what it has made runnable itself, which its processor has in its cache. 0: any other thread,
  /// or one that does not want this.
  std::size_t seat = 0;
};

/// An entry that could not take its locks back. `why` names the key and its holder.
struct NotRestored {
  SchedulerEntry* entry;
  Status why;
};

/// Thread-safe.
class ProcedureScheduler {
 public:
  virtual ~ProcedureScheduler() = default;

  /// Makes each entry of the batch known, in order and in one critical section, and grants its lock
  /// set at once if it is free (or covered by an ancestor) and no waiter is ahead: then
  /// `holds_locks()` is true. The entries are not queued: a settle() follows when their records are
  /// durable.
  virtual void admit(EntryList&& batch) = 0;
  /// Like admit() of a batch. Returns whether the locks are held now (true for an empty set).
  bool admit(SchedulerEntry& entry) {
    EntryList one;
    one.push_back(entry);
    admit(std::move(one));
    return entry.holds_locks();
  }

  /// Whether another entry waits for what `entry` holds, or for its place at a key with a limit, so
  /// that an entry that needs its locks only step by step should give way. False: it may keep them
  /// for its next step, and the grant for that step rides on the record of this one. A waiter that
  /// arrives after the answer waits for one step more.
  [[nodiscard]] virtual bool contended(const SchedulerEntry& entry) const = 0;

  /// Like admit(), for entries whose records say that they held their locks. Called at load,
  /// ancestors first, then by id, before anything is queued. An entry takes its whole lock set,
  /// even if others wait for it. If another entry holds a part of the set, the entry takes nothing,
  /// and is returned with the reason.
  virtual std::vector<NotRestored> restore(EntryList&& batch) = 0;

  /// Does with each entry of the batch, in order, what its disposition says, in one critical
  /// section. Wakes as many sleeping workers as there is new work for, and no busy one. A worker
  /// that calls poll() next, before it does anything that may take long, leaves up to `caller.own`
  /// of the entries that can run now to itself: nobody is woken for these. Returns how many they
  /// are.
  virtual std::size_t settle(EntryList&& batch, SchedulerCaller caller) = 0;
  void settle(EntryList&& batch) { settle(std::move(batch), {}); }

  /// Fills `run` with entries that can run, all of one class, each holding its lock set, and
  /// returns how many: if other workers wait in poll(), no more than a fair share, or `caller.own`
  /// if that is more. If no entry can run, it waits at most `patience` (real time); it returns 0
  /// after that, after nudge(), or after stop(). An entry whose locks were granted here, not by
  /// admit(), has `granted_by_poll()` true: that grant must be durable before the entry's step
  /// runs.
  virtual std::size_t poll(std::span<SchedulerEntry*> run, std::chrono::milliseconds patience,
                           SchedulerCaller caller) = 0;
  std::size_t poll(std::span<SchedulerEntry*> run, std::chrono::milliseconds patience) {
    return poll(run, patience, {});
  }

  /// Like poll(), for reserved workers: takes only work of the top classes, or work that the top
  /// classes wait for. Sleeps while there is none, whatever else could run.
  virtual std::size_t poll_top(std::span<SchedulerEntry*> run,
                               std::chrono::milliseconds patience) = 0;

  /// For a caller of settle() that does not poll next after all: wakes a sleeping worker if an
  /// entry can run.
  virtual void wake_for_ready() = 0;

  /// Makes one waiting poll() return 0 before its patience ends; if none waits, the next one that
  /// would wait. For workers that can help each other.
  virtual void nudge() = 0;

  /// Like nudge(), for one poll_top().
  virtual void nudge_top() = 0;

  /// How often a polled entry was lent a higher class than it was polled in, because an entry of
  /// that class began to wait for it. A mark for is_overtaken(), to be read before the poll.
  [[nodiscard]] virtual std::uint64_t lifts() const noexcept = 0;
  /// Whether `polled`, which poll() returned and whose step has not begun, should be returned
  /// (kReturn) because there is work of a higher class than it was polled in: such work can run, or
  /// has begun to wait for a polled entry since `lifts_then`. Work of a higher priority in the same
  /// class is no reason. Costs one load and no mutex: it sees what happened before the call, but
  /// may miss what another thread does at the same moment.
  [[nodiscard]] virtual bool is_overtaken(const SchedulerEntry& polled,
                                          std::uint64_t lifts_then) const noexcept = 0;
  /// Whether an entry could run that no worker has polled. A worker that goes on with what it has
  /// polled asks. Costs one load and no mutex, and is a hint like is_overtaken().
  [[nodiscard]] virtual bool has_ready() const noexcept = 0;
  /// Whether some classes are top classes and others are not. If not, no work is top work, and a
  /// worker that was to be reserved for it is one like the others.
  [[nodiscard]] virtual bool has_top_classes() const noexcept = 0;
  /// Whether `polled` was polled as work of the top classes, so that a reserved worker may run it.
  [[nodiscard]] virtual bool is_top_work(const SchedulerEntry& polled) const noexcept = 0;

  /// Takes a queued entry out of its queue and leaves it parked: with its locks if it held them
  /// when it was queued, without them if it was still waiting or got them in the queue (no record
  /// says so). Does nothing and returns false if the entry is not queued: parked, or taken by a
  /// worker.
  virtual bool withdraw(SchedulerEntry& entry) = 0;

  /// Wakes all workers; poll() returns 0 from now on.
  virtual void stop() = 0;

  /// Allows at most `limit` entries to hold `key` at once, in whatever mode. An entry whose
  /// ancestor holds the key when it takes its set is not counted, as long as it holds it: so an
  /// entry that gives the key back while such descendants hold it leaves more holders than `limit`.
  /// nullopt: any number. Entries that hold the key already keep it, even if they are more than
  /// `limit`. 0 lets no entry begin.
  virtual void set_limit(const ResourceKey& key, std::optional<std::uint32_t> limit) = 0;

  /// States that `waiter` goes on only after something that `producer` has to do: kReported for an
  /// event with a known producer; kTurn for its turn in a rollback, where `producer` is the head of
  /// what is undone together (a root, or a descendant that fails by itself) and an ancestor of
  /// `waiter`. A waiter has at most one reported wait at a time; it ends when either entry
  /// completes, or by end_reported_wait(). During a kTurn, the head and any of its descendants that
  /// stand in a line are taken to have their turn.
  virtual void report_wait(SchedulerEntry& waiter, SchedulerEntry& producer, WaitLink::Why why) = 0;
  virtual void end_reported_wait(SchedulerEntry& waiter) = 0;

  /// Whether a wait that may have closed a cycle has begun since the last search began. Costs one
  /// load.
  [[nodiscard]] virtual bool suspects_cycles() const noexcept = 0;
  /// Looks for cycles, if one is suspected. It visits the entries that may be in one, and the
  /// entries before them in their lines, each once; other threads work meanwhile. A cycle that
  /// stood when the call began, and stands when it ends, is found. Of cycles that share a member it
  /// finds one; another is suspected when that one is opened.
  virtual void search_cycles() = 0;
  /// Whether a cycle was found since the last take_new_cycles(). Costs one load.
  [[nodiscard]] virtual bool has_new_cycles() const noexcept = 0;
  /// The cycles that were found since the last call, and that still stand.
  [[nodiscard]] virtual std::vector<WaitCycle> take_new_cycles() = 0;
  /// The cycles that there are now, at most 64: each stood at a moment during the call, and an
  /// entry that is in a cycle during the whole call is in one of those listed. Other threads work
  /// meanwhile.
  [[nodiscard]] virtual std::vector<WaitCycle> cycles() const = 0;

  /// Where `entry`, which is known to the scheduler, stands, with at most `most` of the entries
  /// that it waits for. Quick, however many stand there.
  [[nodiscard]] virtual QueuePlace place_of(const SchedulerEntry& entry,
                                            std::size_t most) const = 0;

  /// Every key that is held, waited for or limited, with all holders and all waiters. Cheap enough
  /// to be called every second, however many wait: the listing is made in sections of 1024 keys and
  /// parties, between which other threads work. So each key with less than 1024 parties is shown as
  /// it was at one moment (different keys at different moments). At a longer key, a party that
  /// holds or waits during the whole call is listed once, and one that came meanwhile may be
  /// missing.
  [[nodiscard]] virtual std::vector<LockInfo> locks() const = 0;
};

}  // namespace pv2
