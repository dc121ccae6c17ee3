// SPDX-License-Identifier: Apache-2.0
//
// MasterProcedureScheduler: for a control plane. Each entity (a table, a server, a peer) has a
// queue, and each class of entities a FairQueue of those. Classes have an order, priorities order
// the entities within a class, equals take turns, and no entry is passed over for ever. The rules
// in words: docs/scheduling.md.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/resource.h>

#include <cstdint>
#include <vector>

#include "pv2/scheduler/locking_scheduler.h"

namespace pv2 {

struct MasterSchedulerOptions {
  /// The classes in the order in which they are served. Namespace and region work queues with the
  /// tables. A host adds its own classes where they belong; classes not named here, and entries
  /// that lock nothing, form one last class together.
  std::vector<ResourceClass> class_order = {ResourceClass::kGlobal, ResourceClass::kMeta,
                                            ResourceClass::kServer, ResourceClass::kPeer,
                                            ResourceClass::kTable};

  /// When a later class (or, in a class, a lower priority, or the back of a queue) has something to
  /// run and was passed over this many times in a row, it is served once. 64: one full run of a
  /// worker, so urgent work loses less than 2 % of the turns for each class below it, and the least
  /// urgent work still moves under any load. 0: strictly in order, so the least urgent may starve.
  std::uint32_t bounded_wait = 64;

  /// How many classes of `class_order`, from its beginning, are the top classes, for which reserved
  /// workers (see poll_top()) are kept. 2: what the host runs globally, and meta.
  std::uint32_t top_classes = 2;
};

/// Thread-safe.
class MasterProcedureScheduler : public LockingScheduler {
 public:
  explicit MasterProcedureScheduler(const Clock& clock, MasterSchedulerOptions options = {});
};

}  // namespace pv2
