// SPDX-License-Identifier: Apache-2.0
//
// WakePort: how completions reach the engine, and how they are kept from reaching one that is gone.
// A wake only sets a bit or queues the procedure; it runs nothing. A wake for an older wait is
// dropped.

#pragma once

#include "engine_core.h"

namespace pv2 {

/// Thread-safe. Held by every completion that is still out in the world.
class WakePort final : public WakeTarget {
 public:
  explicit WakePort(EngineCore& core) : core_(&core) {}

  void wake(ProcedureId id, std::uint32_t epoch) noexcept override;
  /// After this has returned no wake reaches the engine.
  void close();

 private:
  Mutex core_mutex_;
  EngineCore* core_ PV2_GUARDED_BY(core_mutex_);
};

}  // namespace pv2
