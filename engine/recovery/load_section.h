// SPDX-License-Identifier: Apache-2.0
//
// What each section of a load asks: whether it is to go on, and whether anybody waits for it.

#pragma once

#include <pv2/base/status.h>

#include <atomic>

#include "core/engine_core.h"

namespace pv2 {

/// kStopping if the engine has halted while its store is being loaded: a stop need not wait until
/// all of it is read. Without a lock.
[[nodiscard]] inline Status why_halted(const EngineCore& core) {
  if (!core.is_halted.load(std::memory_order_relaxed)) return Status();
  return Status(StatusCode::kStopping, "the engine has halted");
}

/// To be called at the end of a section that may be long. In open() nobody waits for it; in the
/// background callers who submit do.
inline void end_load_section(EngineCore& core) PV2_REQUIRES(core.state_mutex) {
  if (!core.loading.runs()) core.looks.nobody_waits();
}

}  // namespace pv2
