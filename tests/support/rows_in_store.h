// SPDX-License-Identifier: Apache-2.0
//
// rows_in_store(): counts the rows in the store of an EngineWorld.

#pragma once

#include <cstddef>

#include "records/row_keys.h"
#include "support/engine_world.h"

namespace pv2::testing {

/// How many rows of this kind live procedures have.
inline std::size_t rows_in_store(EngineWorld& engine, RowKind kind) {
  std::size_t rows = 0;
  const Status scanned = engine.store().scan(Space::kProcedure, "", [&](const StoredRow& row) {
    rows += parse_procedure_key(row.key)->kind == kind ? 1 : 0;
    return Status();
  });
  REQUIRE(scanned.ok());
  return rows;
}

}  // namespace pv2::testing
