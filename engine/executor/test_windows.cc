// SPDX-License-Identifier: Apache-2.0
//
// Test windows: what tests and pv2::testing see of the inside of an executor. Each struct is a
// friend of ProcedureExecutor; the work is done by the room that it belongs to.

#include <utility>

#include "core/state_lock.h"
#include "executor/engine.h"
#include "model/looks.h"
#include "pv2/engine/procedure_executor.h"
#include "watch/persisted_image.h"
#include "watch/state_audit.h"

namespace pv2 {

PersistedImage PersistedImage::of(const ProcedureExecutor& executor) {
  return of(executor.engine_->core);
}

PersistedProcedure PersistedImage::of_ended(const ProcedureExecutor& executor, ProcedureId id) {
  return of_ended(executor.engine_->core, id);
}

std::vector<std::string> StateAudit::of(const ProcedureExecutor& executor) {
  EngineCore& core = executor.engine_->core;
  StateLock lock(core);
  return audit_state(core);
}

void StateAudit::change(const ProcedureExecutor& executor,
                        const std::function<void(EngineState&)>& change) {
  EngineCore& core = executor.engine_->core;
  StateLock lock(core);
  change(core.state);
}

SectionLooks SectionLooks::of(const ProcedureExecutor& executor) {
  EngineCore& core = executor.engine_->core;
  StateLock lock(core);
  return {core.looks.total(), core.looks.most(), core.looks.wide()};
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
