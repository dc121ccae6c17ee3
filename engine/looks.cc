// SPDX-License-Identifier: Apache-2.0
//
// The counters are the engine's; tests reach them through its executor.

#include "looks.h"

#include <utility>

#include "engine.h"
#include "pv2/engine/procedure_executor.h"

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

void SectionLooks::at_each_pause(const ProcedureExecutor& executor, std::function<void()> call) {
  executor.engine_->core.between_sections = std::move(call);
}

}  // namespace pv2
