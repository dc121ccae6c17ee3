// SPDX-License-Identifier: Apache-2.0
//
// Listeners: tells the host's listeners what has become durable. News are collected under the state
// mutex, so their order is that of publication, and told by one task at a time on the pool's thread
// for them. A listener that hangs holds up the other listeners and nothing else; what waits for it
// is bounded.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/status.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "pv2/engine/procedure_listener.h"
#include "pv2/engine/registration.h"
#include "removable_call.h"

namespace pv2 {

struct EngineCore;

/// Thread-safe. Owned by the engine; a Subscription may hold it while it ends, even after the
/// engine is gone: remove() uses nothing of the engine.
class Listeners final : public internal::Registrations {
 public:
  explicit Listeners(EngineCore& core) : core_(core) {}

  /// Returns the id for remove().
  Result<std::uint64_t> add(ProcedureListener listener) PV2_EXCLUDES(listeners_mutex_);
  void remove(std::uint64_t id) override PV2_EXCLUDES(listeners_mutex_);
  /// Whether there are any. A hint that spares the news: most hosts have none.
  [[nodiscard]] const std::atomic<bool>& any() const noexcept { return any_; }
  /// Tells the oldest news, one batch of them. Runs on the pool, once at a time.
  void tell() PV2_EXCLUDES(listeners_mutex_);

 private:
  struct Listener {
    std::uint64_t id = 0;
    ProcedureListener call;
    RemovableCall guard;
  };
  // Shared by the list and by whoever is telling: a listener may be removed meanwhile.
  using Shared = std::shared_ptr<Listener>;

  void tell_one(Listener& listener, const ProcedureNews& news);

  EngineCore& core_;
  std::atomic<bool> any_{false};
  Mutex listeners_mutex_;
  std::vector<Shared> listeners_ PV2_GUARDED_BY(listeners_mutex_);
  std::uint64_t last_id_ PV2_GUARDED_BY(listeners_mutex_) = 0;
};

}  // namespace pv2
