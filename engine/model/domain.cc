// SPDX-License-Identifier: Apache-2.0
//
// The destructor needs the complete type of the plan that a domain owns.

#include "model/domain.h"

#include "model/rollback_plan.h"

namespace pv2 {

RareOfDomain::RareOfDomain() = default;
RareOfDomain::~RareOfDomain() = default;

}  // namespace pv2
