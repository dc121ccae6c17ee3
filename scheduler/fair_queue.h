// SPDX-License-Identifier: Apache-2.0
//
// FairQueue: the entities of one class that have something to run. The highest priority goes first,
// within a bound; entities of equal priority take turns, one entry each, at each seat (SeatTurns).
// An entity with entries of two priorities stands in line once for each. It owns no entity.

#pragma once

#include <pv2/base/assert.h>

#include <array>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "bounded_picker.h"
#include "entity_queue.h"
#include "rank.h"
#include "ready_queue.h"
#include "seat_turns.h"

namespace pv2 {

/// Guarded by its scheduler's mutex.
class FairQueue {
 public:
  explicit FairQueue(std::uint32_t bounded_wait)
      : bounded_wait_(bounded_wait), picker_(bounded_wait) {}

  [[nodiscard]] bool empty() const noexcept { return picker_.empty(); }

  /// Returns the seat where the entity stands: that of `place` only if it did not stand in line. If
  /// there is no memory, nothing has changed.
  Seat push(SchedulerEntry& entry, EntityQueue& entity, const ReadyPlace& place) {
    EntityLane& lane = in_line(entity, place);
    lane.ready.push(entry, place.section);
    return lane.seat;
  }

  /// Like push(), but puts `entry` at the beginning of its section, and gives its entity the next
  /// turn among those of its priority and seat.
  Seat put_back(SchedulerEntry& entry, EntityQueue& entity, const ReadyPlace& place) {
    EntityLane& lane = in_line(entity, place);
    Ring& ring = lines_[slot_of(lane.rank)]->rings[lane.seat];
    ring.splice(ring.begin(), ring, ring.iterator_to(lane));
    lane.ready.put_back(entry, place.section);
    return lane.seat;
  }

  void remove(SchedulerEntry& entry, EntityQueue& entity, std::uint16_t rank) noexcept {
    EntityLane* const lane = entity.find(rank);
    PV2_ASSERT(lane != nullptr, "an entry that is removed stands in a lane");
    lane->ready.remove(entry);
    if (lane->ready.empty()) end(*lane);
  }

  /// Takes the next entry in turn; nullptr: it is at none of the seats of `choice`. Must not be
  /// called when empty().
  SchedulerEntry* pop(const SeatChoice& choice) noexcept {
    const std::size_t slot = picker_.peek();
    Line& line = *lines_[slot];
    const std::optional<Seat> seat = line.seats.serve(choice);
    if (!seat) return nullptr;
    picker_.served(slot);
    Ring& ring = line.rings[*seat];
    EntityLane& lane = ring.front();
    SchedulerEntry& entry = lane.ready.pop(bounded_wait_);
    if (lane.ready.empty()) {
      end(lane);
    } else {
      ring.splice(ring.end(), ring, ring.begin());
    }
    return &entry;
  }

 private:
  using Ring = boost::intrusive::list<EntityLane, boost::intrusive::constant_time_size<false>>;
  // The entities of one priority.
  struct Line {
    std::array<Ring, kSeats> rings;  // by seat
    SeatPicker seats;
  };

  static std::size_t slot_of(std::uint16_t rank) noexcept {
    return BoundedPicker::kSlots - 1 - rank_priority(rank);
  }

  // The lane of an entity for a rank. If it has none, it joins the end of the line.
  EntityLane& in_line(EntityQueue& entity, const ReadyPlace& place) {
    if (EntityLane* const lane = entity.find(place.rank); lane != nullptr) return *lane;
    const std::size_t slot = slot_of(place.rank);
    if (lines_[slot] == nullptr) lines_[slot] = std::make_unique<Line>();
    EntityLane& lane = entity.add(place.rank, place.seat);
    lines_[slot]->rings[place.seat].push_back(lane);
    lines_[slot]->seats.fill(place.seat);
    picker_.fill(slot);
    return lane;
  }

  void end(EntityLane& lane) noexcept {
    const std::size_t slot = slot_of(lane.rank);
    Line& line = *lines_[slot];
    Ring& ring = line.rings[lane.seat];
    ring.erase(ring.iterator_to(lane));
    if (ring.empty()) line.seats.drain(lane.seat);
    if (line.seats.empty()) picker_.drain(slot);
    lane.entity->drop(lane);
  }

  const std::uint32_t bounded_wait_;
  BoundedPicker picker_;
  // By priority, the highest first; null: there was no entity with this one yet.
  std::array<std::unique_ptr<Line>, BoundedPicker::kSlots> lines_;
};

}  // namespace pv2
