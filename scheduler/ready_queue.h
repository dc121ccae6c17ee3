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
#include "seat_turns.h"

namespace pv2 {

struct LockNode;

/// Where an entry stands in a ready queue.
struct ReadyPlace {
  LockNode* entity;  ///< The node of the entry's primary key; null for an empty lock set.
  ReadySection section;
  std::uint16_t rank;  ///< Its own, or a larger one that it was lent.
  Seat seat;
};

/// Guarded by its scheduler's mutex.
class ReadyQueue {
 public:
  virtual ~ReadyQueue() = default;

  /// The rank of an entry by its own lock set and priority (rank.h).
  [[nodiscard]] virtual std::uint16_t rank(const SchedulerEntry& entry) const = 0;
  /// Whether work of this rank is for reserved workers.
  [[nodiscard]] virtual bool is_top(std::uint16_t rank) const = 0;

  /// Returns the seat where the entry stands now: `place.seat`, or that of its entity, if that
  /// stands in line already.
  virtual Seat push(SchedulerEntry& entry, const ReadyPlace& place) = 0;
  /// Like push(), but at the beginning of the section, as if the entry had never been taken.
  virtual Seat put_back(SchedulerEntry& entry, const ReadyPlace& place) = 0;
  /// `place` is the one that it was pushed with, at the seat that push() has returned.
  virtual void remove(SchedulerEntry& entry, const ReadyPlace& place) = 0;

  /// How many entries stand before `entry` in the queue of its entity, counted up to `most`;
  /// `place` as in remove().
  [[nodiscard]] virtual std::size_t count_ahead(const SchedulerEntry& entry,
                                                const ReadyPlace& place, std::size_t most) = 0;

  /// The highest class, as ranks order them (rank.h), that has an entry; also 0 if there is none.
  [[nodiscard]] virtual std::size_t first_class() const = 0;

  /// Takes the next entries, as if one by one but all of one class; returns how many. It ends where
  /// the next entry is at none of the seats of `choice`, and so for another worker. If that is the
  /// first one, it takes what is elsewhere.
  virtual std::size_t take(std::span<SchedulerEntry*> run, const SeatChoice& choice) = 0;
  /// Like take(), but only entries whose rank is_top().
  virtual std::size_t take_top(std::span<SchedulerEntry*> run, const SeatChoice& choice) = 0;
};

}  // namespace pv2
