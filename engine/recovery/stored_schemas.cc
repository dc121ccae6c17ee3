// SPDX-License-Identifier: Apache-2.0
//
// A type that has changed is refused, accepted by order of the host, or of no consequence because
// no procedure of it is live.

#include "recovery/stored_schemas.h"

#include <algorithm>
#include <utility>

#include "core/effects.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"
#include "tree/ending.h"

namespace pv2 {
namespace {

// Whether fields of a procedure of `type` may be read again.
bool is_live(EngineCore& core, const ProcedureType& type) PV2_REQUIRES(core.state_mutex) {
  for (const Execution& execution : core.state.live) {
    if (execution.type == &type && !is_spent(execution)) return true;
  }
  return false;
}

// OK if the program goes on in spite of `changed`.
Status judge(EngineCore& core, const ProcedureType& type, const Status& changed, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  const std::vector<std::string>& accepted = core.options.accept_field_changes;
  const bool meant = std::find(accepted.begin(), accepted.end(), type.name) != accepted.end();
  if (!meant && is_live(core, type)) {
    return {changed.code(),
            "procedures of type '" + type.name + "' are live, and their " +
                std::string(changed.message()) +
                ". Give what has changed a number of its own; or let the program that wrote "
                "them end them; or, if what they have is to be read so, name the type in "
                "ExecutorOptions::accept_field_changes. Nothing was changed"};
  }
  effects.log(LogLevel::kWarning, "'" + type.name + "': " + std::string(changed.message()) +
                                      (meant ? "; as ExecutorOptions::accept_field_changes "
                                               "says, it is read so"
                                             : "; none is live, so it is what it is now"));
  return Status();
}

}  // namespace

Status StoredSchemas::read(ProcedureStore& store) {
  return store.scan(Space::kEngine, kSchemaKeyPrefix, [&](const StoredRow& found) {
    const auto type = parse_schema_key(found.key);
    PV2_ASSERT(type, "a scan finds keys that begin with its prefix");
    auto rows = decode_schema(found.value);
    if (!rows.ok()) return rows.status().with_context("schema of '" + std::string(*type) + "'");
    rows_.insert_or_assign(std::string(*type), *std::move(rows));
    return Status();
  });
}

const SchemaRows& StoredSchemas::of(std::string_view type) const {
  static const SchemaRows& none = *new SchemaRows();
  const auto at = rows_.find(type);
  return at == rows_.end() ? none : at->second;
}

bool StoredSchemas::differ(const EngineCore& core) const {
  const auto& types = core.options.registry.types();
  return std::any_of(types.begin(), types.end(), [this](const auto& type) {
    return !check_schema(of(type.first), rows_of(type.second->schema)).ok();
  });
}

Status StoredSchemas::check(EngineCore& core, Effects& effects) const {
  if (!core.keeps_records) return Status();
  for (const auto& [name, type] : core.options.registry.types()) {
    SchemaRows now = rows_of(type->schema);
    const SchemaRows& before = of(name);
    if (const Status changed = check_schema(before, now); !changed.ok()) {
      if (Status status = judge(core, *type, changed, effects); !status.ok()) return status;
    }
    std::string stored;
    std::string row;
    encode_schema(before, stored);
    encode_schema(merge_schemas(before, std::move(now)), row);
    if (!rows_.contains(name) || row != stored) {
      Status taken = core.state.ids.take_along(schema_key(name), std::move(row));
      if (!taken.ok()) return taken;
    }
  }
  return Status();
}

}  // namespace pv2
