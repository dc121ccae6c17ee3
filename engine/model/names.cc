// SPDX-License-Identifier: Apache-2.0
//
// The spelling of names in messages; see names.h. Nothing here takes a lock or calls user code.

#include "model/names.h"

#include "model/execution.h"
#include "pv2/engine/procedure_registry.h"

namespace pv2 {

std::string name_of(ProcedureId id) { return fmt::format("procedure {}", id); }

std::string name_of(const Execution& execution) {
  return fmt::format("procedure {} ({})", execution.id, execution.name_of_type());
}

std::string name_of_step(const Execution& execution, std::uint32_t step) {
  const StepInfo* const info =
      execution.type != nullptr ? execution.type->find_step(step) : nullptr;
  return info != nullptr ? std::string(info->name) : fmt::to_string(step);
}

}  // namespace pv2
