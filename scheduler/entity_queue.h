// SPDX-License-Identifier: Apache-2.0
//
// EntityQueue: the entries of one entity (a table, a server, a host's thing) that can run, one lane
// per rank. Nearly every entity has one rank, so the first lane is embedded; further ones
// are made once and kept for as long as the entity. It does not order entities among each other:
// that is FairQueue.

#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>

#include "pv2/scheduler/scheduler_entry.h"
#include "ready_lane.h"

namespace pv2 {

/// The runnable entries of one entity of one rank; linked in a FairQueue while there are any.
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
