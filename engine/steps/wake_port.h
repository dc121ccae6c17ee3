// SPDX-License-Identifier: Apache-2.0
//
// WakePort: the way by which completions reach the engine. Completions may outlive the engine; a
// closed port drops their wakes. A wake only sets a bit or queues the procedure; it runs no step. A
// wake for an older wait is dropped.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// Thread-safe. Shared by the engine and by every completion that a step has handed out.
class WakePort final : public WakeTarget {
 public:
  explicit WakePort(EngineCore& core) : core_(&core) {}

  void wake(AwaitSlot& slot) noexcept override;
  /// After this has returned, no wake reaches the engine.
  void close();

 private:
  Mutex core_mutex_;
  EngineCore* core_ PV2_GUARDED_BY(core_mutex_);
};

}  // namespace pv2
