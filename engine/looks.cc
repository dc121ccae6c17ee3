// SPDX-License-Identifier: Apache-2.0
//
// The counters are the engine's; tests reach them through its executor.

#include "looks.h"

#include "engine.h"

namespace pv2 {

SectionLooks SectionLooks::of(const ProcedureExecutor& executor) {
  EngineCore& core = executor.engine_->core;
  StateLock lock(core);
  return {core.looks.total(), core.looks.most()};
}

void SectionLooks::reset(const ProcedureExecutor& executor) {
  EngineCore& core = executor.engine_->core;
  StateLock lock(core);
  core.looks.forget();
}

}  // namespace pv2
