// SPDX-License-Identifier: Apache-2.0
//
// FairQueue: the entities of one class that have something to run. The highest priority goes first,
// within a bound; entities of equal priority take turns, one entry each. An entity with entries of
// two priorities stands in line once for each. It owns nothing.

#pragma once

#include <pv2/base/assert.h>

#include <array>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>

#include "bounded_picker.h"
#include "entity_queue.h"
#include "rank.h"

namespace pv2 {

/// Guarded by its scheduler's mutex.
class FairQueue {
 public:
  explicit FairQueue(std::uint32_t bounded_wait)
      : bounded_wait_(bounded_wait), picker_(bounded_wait) {}

  [[nodiscard]] bool empty() const noexcept { return picker_.empty(); }

  void push(SchedulerEntry& entry, EntityQueue& entity, ReadySection section, std::uint16_t rank) {
    EntityLane* lane = entity.find(rank);
    if (lane == nullptr) {
      lane = &entity.add(rank);
      rings_[slot_of(*lane)].push_back(*lane);
      picker_.fill(slot_of(*lane));
    }
    lane->ready.push(entry, section);
  }

  /// Puts `entry` back at the beginning of its section, and gives its entity the next turn among
  /// those of its priority.
  void put_back(SchedulerEntry& entry, EntityQueue& entity, ReadySection section,
                std::uint16_t rank) {
    EntityLane* lane = entity.find(rank);
    if (lane == nullptr) {
      lane = &entity.add(rank);
      rings_[slot_of(*lane)].push_front(*lane);
      picker_.fill(slot_of(*lane));
    } else {
      Ring& ring = rings_[slot_of(*lane)];
      ring.splice(ring.begin(), ring, ring.iterator_to(*lane));
    }
    lane->ready.put_back(entry, section);
  }

  void remove(SchedulerEntry& entry, EntityQueue& entity, std::uint16_t rank) noexcept {
    EntityLane* const lane = entity.find(rank);
    PV2_ASSERT(lane != nullptr, "an entry that is removed stands in a lane");
    lane->ready.remove(entry);
    if (lane->ready.empty()) end(*lane);
  }

  /// Takes the next entry in turn. Must not be called when empty().
  SchedulerEntry& pop() noexcept {
    const std::size_t slot = picker_.peek();
    picker_.served(slot);
    EntityLane& lane = rings_[slot].front();
    SchedulerEntry& entry = lane.ready.pop(bounded_wait_);
    if (lane.ready.empty()) {
      end(lane);
    } else {
      rings_[slot].splice(rings_[slot].end(), rings_[slot], rings_[slot].begin());
    }
    return entry;
  }

 private:
  using Ring = boost::intrusive::list<EntityLane, boost::intrusive::constant_time_size<false>>;

  static std::size_t slot_of(const EntityLane& lane) noexcept {
    return BoundedPicker::kSlots - 1 - rank_priority(lane.rank);
  }

  void end(EntityLane& lane) noexcept {
    Ring& ring = rings_[slot_of(lane)];
    ring.erase(ring.iterator_to(lane));
    if (ring.empty()) picker_.drain(slot_of(lane));
    lane.entity->drop(lane);
  }

  const std::uint32_t bounded_wait_;
  BoundedPicker picker_;
  std::array<Ring, BoundedPicker::kSlots> rings_;
};

}  // namespace pv2
