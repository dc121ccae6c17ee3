// SPDX-License-Identifier: Apache-2.0
//
// StoredSchemas: what the fields of each type meant to the programs that wrote the store, compared
// with what they mean in this one. Nothing is written here: new rows ride on the records that
// open() writes when everything is well.

#pragma once

#include <pv2/store/procedure_store.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/engine_core.h"
#include "records/schema_rows.h"

namespace pv2 {

/// Owned by one thread.
class StoredSchemas {
 public:
  /// Reads the rows of all types.
  Status read(ProcedureStore& store);
  /// Whether the fields of some type mean something else than in this program.
  [[nodiscard]] bool differ(const EngineCore& core) const;
  /// kFailedPrecondition if live procedures have fields that mean something else now and
  /// ExecutorOptions::accept_field_changes does not name their type. Other changes are logged.
  /// kInvalidArgument if the row of a type does not fit into a batch of the store.
  Status check(EngineCore& core, Effects& effects) const PV2_REQUIRES(core.state_mutex);

 private:
  [[nodiscard]] const SchemaRows& of(std::string_view type) const;

  std::map<std::string, SchemaRows, std::less<>> rows_;  // by type
};

}  // namespace pv2
