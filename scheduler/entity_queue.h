// SPDX-License-Identifier: Apache-2.0
//
// EntityQueue: the runnable entries of one entity (a table, a server, something of the host's), one
// lane per rank. Nearly every entity has entries of one rank only, so the first lane is embedded;
// further lanes are made once and live as long as the entity. FairQueue orders the entities among
// each other.

#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>

#include "pv2/scheduler/scheduler_entry.h"
#include "ready_lane.h"

namespace pv2 {

/// The runnable entries of one entity that have the same rank; linked in a FairQueue while there
/// are any.
struct EntityLane
    : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> {
  ReadyLane ready;
  std::uint16_t rank = 0;
  std::unique_ptr<EntityLane> further;
};

/// Guarded by its scheduler's mutex.
class EntityQueue {
 public:
  /// The lane for `rank`: the one in use, or an empty one that takes on this rank.
  EntityLane& lane(std::uint16_t rank) {
    EntityLane* spare = nullptr;
    EntityLane* lane = &first_;
    while (true) {
      if (lane->ready.empty()) {
        if (spare == nullptr) spare = lane;
      } else if (lane->rank == rank) {
        return *lane;
      }
      if (lane->further == nullptr) break;
      lane = lane->further.get();
    }
    if (spare == nullptr) {
      lane->further = std::make_unique<EntityLane>();
      spare = lane->further.get();
    }
    spare->rank = rank;
    return *spare;
  }

 private:
  EntityLane first_;
};

}  // namespace pv2
