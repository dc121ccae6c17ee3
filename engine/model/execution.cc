// SPDX-License-Identifier: Apache-2.0
//
// What an execution says of itself with the help of its type.

#include "model/execution.h"

#include "pv2/engine/procedure_registry.h"

namespace pv2 {

bool Execution::is_undone_with_its_tree() const noexcept {
  // A root has no parent that would compensate for it.
  return is_root() ||
         !(record.state == ProcedureState::kSuccess && type != nullptr && type->final_on_success);
}

}  // namespace pv2
