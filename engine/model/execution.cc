// SPDX-License-Identifier: Apache-2.0
//
// What an execution says of itself with the help of its type.

#include "model/execution.h"

#include "pv2/engine/procedure_registry.h"

namespace pv2 {

// A root has no parent that would compensate for it.
bool Execution::is_final_once_it_ends() const noexcept {
  return !is_root() && type != nullptr && type->final_on_success;
}

// A parent succeeds after its children have ended. So if the nearest final ancestor has not
// succeeded, none above it has.
bool Execution::is_kept_above() const noexcept {
  const Execution* const above = place->final_above;
  return above != nullptr && above->record.state == ProcedureState::kSuccess;
}

bool Execution::is_undone_with_its_tree() const noexcept {
  if (is_root() || record.state != ProcedureState::kSuccess) return true;
  return !is_kept_above() && !is_final_once_it_ends();
}

}  // namespace pv2
