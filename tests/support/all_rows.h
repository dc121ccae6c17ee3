// SPDX-License-Identifier: Apache-2.0
//
// visit_all(): visits every row of a store, in all its spaces.

#pragma once

#include <pv2/store/procedure_store.h>

namespace pv2::testing {

/// Visits every row, in order of space and key.
inline Status visit_all(ProcedureStore& store, const RowVisitor& visit) {
  for (const Space space :
       {Space::kEngine, Space::kHost, Space::kNonce, Space::kProcedure, Space::kResult}) {
    Status status = store.scan(space, "", visit);
    if (!status.ok()) return status;
  }
  return Status();
}

}  // namespace pv2::testing
