// SPDX-License-Identifier: Apache-2.0
//
// EntityQueue: the runnable entries of one entity (a table, a server, something of the host's), a
// lane per rank, each for as long as it has entries. Nearly every entity has at most one lane at a
// time, and none while its entries wait. FairQueue orders the entities among each other.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/block_cache.h>

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>

#include "pv2/scheduler/scheduler_entry.h"
#include "ready_lane.h"
#include "seat_turns.h"

namespace pv2 {

class EntityQueue;

/// The runnable entries of one entity that have the same rank; linked in a FairQueue as soon as
/// there are any.
struct EntityLane
    : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>,
      Recycled {
  EntityLane(EntityQueue& entity, std::uint16_t rank, Seat seat)
      : entity(&entity), rank(rank), seat(seat) {}

  ReadyLane ready;
  EntityQueue* const entity;
  const std::uint16_t rank;
  const Seat seat;                   ///< Where it stands in line; that of its first entry.
  std::unique_ptr<EntityLane> next;  ///< Of the same entity.
};

/// One word. Guarded by its scheduler's mutex.
class EntityQueue {
 public:
  EntityQueue() = default;
  EntityQueue(const EntityQueue&) = delete;
  EntityQueue& operator=(const EntityQueue&) = delete;

  /// The lane for `rank`, which has entries; nullptr: no entry has this rank.
  [[nodiscard]] EntityLane* find(std::uint16_t rank) noexcept {
    EntityLane* lane = lanes_.get();
    while (lane != nullptr && lane->rank != rank) lane = lane->next.get();
    return lane;
  }
  /// A new lane, which is to get an entry; the entity must have none for `rank`.
  [[nodiscard]] EntityLane& add(std::uint16_t rank, Seat seat) {
    PV2_ASSERT(find(rank) == nullptr, "an entity has at most one lane for a rank");
    auto lane = std::make_unique<EntityLane>(*this, rank, seat);
    lane->next = std::move(lanes_);
    lanes_ = std::move(lane);
    return *lanes_;
  }
  /// Ends a lane that has no entries left, and is in no queue.
  void drop(const EntityLane& lane) noexcept {
    PV2_ASSERT(lane.entity == this && lane.ready.empty(), "a lane ends with its last entry");
    std::unique_ptr<EntityLane>* at = &lanes_;
    while (at->get() != &lane) at = &(*at)->next;
    *at = std::move((*at)->next);
  }

 private:
  std::unique_ptr<EntityLane> lanes_;
};

}  // namespace pv2
