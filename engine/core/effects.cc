// SPDX-License-Identifier: Apache-2.0
//
// The constructor and the destructor need the complete types of what Effects owns.

#include "core/effects.h"

#include "model/execution.h"
#include "model/requests.h"
#include "model/rollback_plan.h"

namespace pv2 {

Effects::Effects() = default;
Effects::~Effects() = default;

}  // namespace pv2
