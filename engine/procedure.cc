// SPDX-License-Identifier: Apache-2.0
//
// The default of Procedure, and what becomes of what user code throws.

#include "pv2/engine/procedure.h"

#include <exception>

namespace pv2 {

Outcome Procedure::rollback(StepContext& /*ctx*/) { return undone(); }

namespace internal {

Status status_of_current_exception(std::string_view what) noexcept {
  std::string message(what);
  try {
    throw;
  } catch (const std::exception& exception) {
    message += " threw: ";
    message += exception.what();
  } catch (...) {
    message += " threw something that is no std::exception";
  }
  return Status(StatusCode::kInternal, std::move(message));
}

}  // namespace internal
}  // namespace pv2
