// SPDX-License-Identifier: Apache-2.0
//
// EarlyWait: a caller that waits for the end of a procedure that is perhaps not loaded yet. When
// the store is loaded it waits with the others of that procedure, or is told what there is to tell.

#pragma once

#include <pv2/base/ids.h>

#include "model/execution.h"

namespace pv2 {

struct EarlyWait {
  ProcedureId id;
  Waiter waiter;
};

}  // namespace pv2
