// SPDX-License-Identifier: Apache-2.0
//
// What older programs have left on a disk: format 1 had no rows in Space::kResult, and a root that
// had ended stayed among the live ones.

#pragma once

#include <pv2/store/memory_procedure_store.h>

#include "record_codec.h"
#include "support/catch.h"

namespace pv2::testing {

/// Leaves the result of `id`, which has ended, as an older program would have.
inline void leave_among_live_ones(MemoryDisk& disk, ProcedureId id) {
  const auto row = disk.get(Space::kResult, result_key(id));
  REQUIRE(row.has_value());
  const auto rows = split_result(*row);
  REQUIRE(rows.has_value());
  disk.put(Space::kProcedure, procedure_key(id, RowKind::kHeader), rows->header);
  disk.put(Space::kProcedure, procedure_key(id, RowKind::kState), rows->state);
  disk.erase(Space::kResult, result_key(id));
}

}  // namespace pv2::testing
