// SPDX-License-Identifier: Apache-2.0
//
// Rows as older programs have left them on a disk: format 1 had no rows in Space::kResult, and an
// ended root stayed among the live procedures.

#pragma once

#include <pv2/base/frame.h>
#include <pv2/store/memory_procedure_store.h>

#include "records/row_keys.h"
#include "records/row_parts.h"
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

/// Like leave_among_live_ones(), by a program that dated no results. `id` ended at age 0.
inline void leave_undated(MemoryDisk& disk, ProcedureId id) {
  leave_among_live_ones(disk, id);
  REQUIRE(disk.erase(Space::kEngine, kept_key(Duration(0), id)));
  const auto key = procedure_key(id, RowKind::kState);
  const std::string with_age = *disk.get(Space::kProcedure, key);
  std::string_view left = with_age;
  std::string engine_part(*read_frame(left));
  const std::string ending = {'\x88', '\x01', '\0'};  // field 17: 0
  REQUIRE(engine_part.ends_with(ending));
  engine_part.resize(engine_part.size() - ending.size());
  std::string row;
  append_frame(row, engine_part);
  row.append(left);
  disk.put(Space::kProcedure, key, row);
}

}  // namespace pv2::testing
