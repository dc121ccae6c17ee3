// SPDX-License-Identifier: Apache-2.0
//
// ReadyQueue: the order among runnable entries. It never holds an entry that waits for a lock, so
// every entry in it may be taken, and taking is all it has to be good at. Each scheduler brings its
// own.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pv2/scheduler/scheduler_entry.h"
#include "ready_lane.h"

namespace pv2 {

struct LockNode;

/// Guarded by its scheduler's mutex.
class ReadyQueue {
 public:
  virtual ~ReadyQueue() = default;

  /// The rank of an entry by its own lock set and priority (rank.h).
  [[nodiscard]] virtual std::uint16_t rank(const SchedulerEntry& entry) const = 0;
  /// Whether work of this rank is for reserved workers.
  [[nodiscard]] virtual bool is_top(std::uint16_t rank) const = 0;

  /// `entity` is the node of the entry's primary key, null for an empty lock set. The entry stands
  /// in the queue with `rank`, which may be larger than its own.
  virtual void push(SchedulerEntry& entry, LockNode* entity, ReadySection section,
                    std::uint16_t rank) = 0;
  /// Like push(), but at the beginning of the section, as if the entry had never been taken.
  virtual void put_back(SchedulerEntry& entry, LockNode* entity, ReadySection section,
                        std::uint16_t rank) = 0;
  /// `rank` is the one that it was pushed with.
  virtual void remove(SchedulerEntry& entry, LockNode* entity, std::uint16_t rank) = 0;

  /// How many entries stand before `entry` in the queue of its entity, counted up to `most`; `rank`
  /// as in remove().
  [[nodiscard]] virtual std::size_t count_ahead(const SchedulerEntry& entry, LockNode* entity,
                                                std::uint16_t rank, std::size_t most) = 0;

  /// The highest class, as ranks order them (rank.h), that has an entry; also 0 if there is none.
  [[nodiscard]] virtual std::size_t first_class() const = 0;

  /// Takes the next entries, as if one by one but all of one class; returns how many.
  virtual std::size_t take(std::span<SchedulerEntry*> run) = 0;
  /// Like take(), but only entries whose rank is_top().
  virtual std::size_t take_top(std::span<SchedulerEntry*> run) = 0;
};

}  // namespace pv2
