// SPDX-License-Identifier: Apache-2.0
//
// Listeners: tells the host's listeners what has become durable. News are collected under the state
// mutex, so their order is that of publication, and told by one task at a time on the pool's thread
// for them. A listener that hangs holds up the other listeners and nothing else; what waits for it
// is bounded.

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "pv2/engine/procedure_executor.h"
#include "removable_call.h"

namespace pv2 {

struct EngineCore;

/// Thread-safe.
class Listeners {
 public:
  explicit Listeners(EngineCore& core) : core_(core) {}

  Result<ListenerId> add(ProcedureListener listener) PV2_EXCLUDES(listeners_mutex_);
  void remove(ListenerId id) PV2_EXCLUDES(listeners_mutex_);
  /// Tells the oldest news, one batch of them. Runs on the pool, once at a time.
  void tell() PV2_EXCLUDES(listeners_mutex_);

 private:
  struct Listener {
    ListenerId id;
    ProcedureListener call;
    RemovableCall guard;
  };
  // Shared by the list and by whoever is telling: a listener may be removed meanwhile.
  using Shared = std::shared_ptr<Listener>;

  void tell_one(Listener& listener, const ProcedureNews& news);

  EngineCore& core_;
  Mutex listeners_mutex_;
  std::vector<Shared> listeners_ PV2_GUARDED_BY(listeners_mutex_);
  std::uint64_t last_id_ PV2_GUARDED_BY(listeners_mutex_) = 0;
};

}  // namespace pv2
