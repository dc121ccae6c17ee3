// SPDX-License-Identifier: Apache-2.0
//
// The name of the type, known to this program or not.

#include "model/identity.h"

#include "pv2/engine/procedure_registry.h"

namespace pv2 {

std::string_view Identity::name_of_type() const noexcept {
  return type != nullptr ? std::string_view(type->name) : names->type.view();
}

}  // namespace pv2
