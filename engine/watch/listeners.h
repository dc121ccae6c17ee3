// SPDX-License-Identifier: Apache-2.0
//
// Listeners: tells the host's listeners what has become durable. News is collected under the state
// mutex, so it is in the order of publication. One task at a time, on the pool's thread for news,
// tells it. A listener that hangs delays the other listeners and nothing else; the amount of news
// that waits for it is bounded.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/status.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/removable_call.h"
#include "pv2/engine/procedure_listener.h"
#include "pv2/engine/registration.h"

namespace pv2 {

struct EngineCore;

/// Thread-safe. Owned by the engine; a Subscription may hold it while it ends, even after the
/// engine is gone: remove() uses nothing of the engine.
class Listeners final : public internal::Registrations {
 public:
  explicit Listeners(EngineCore& core) : core_(core) {}

  /// From now on `listener` is told what becomes durable. Returns the id for remove().
  /// kInvalidArgument: it is empty.
  Result<std::uint64_t> add(ProcedureListener listener) PV2_EXCLUDES(listeners_mutex_);
  /// When this returns, the listener is not running and will not be called again. On a thread of
  /// the engine (a listener may remove itself) it does not wait for a call that is under way.
  void remove(std::uint64_t id) override PV2_EXCLUDES(listeners_mutex_);
  /// Whether there are listeners. A hint: without listeners no news is collected.
  [[nodiscard]] const std::atomic<bool>& any() const noexcept { return any_; }
  /// Tells one batch of the oldest news. Runs on the pool, one call at a time.
  void tell() PV2_EXCLUDES(listeners_mutex_);

 private:
  struct Listener {
    std::uint64_t id = 0;
    ProcedureListener call;
    RemovableCall guard;
  };
  // Shared by the list and by tell(): a listener may be removed while it is being told.
  using Shared = std::shared_ptr<Listener>;

  void tell_one(Listener& listener, const ProcedureNews& news);

  EngineCore& core_;
  std::atomic<bool> any_{false};
  Mutex listeners_mutex_;
  std::vector<Shared> listeners_ PV2_GUARDED_BY(listeners_mutex_);
  std::uint64_t last_id_ PV2_GUARDED_BY(listeners_mutex_) = 0;
};

}  // namespace pv2
