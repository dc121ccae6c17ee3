// SPDX-License-Identifier: Apache-2.0
//
// The steps of ModifyNamespace. Between them no table can come, because the namespace is locked.

#include "pv2/procedures/modify_namespace.h"

#include <string>

#include "table_steps.h"

namespace pv2 {

LockSet ModifyNamespace::locks() const {
  return LockSet().name_space(row_.name, LockMode::kExclusive);
}

ModifyNamespace::Flow ModifyNamespace::execute_from_state(ModifyNamespaceStep step,
                                                          StepContext& ctx) {
  switch (step) {
    case ModifyNamespaceStep::kPrepare:
      return prepare(ctx);
    case ModifyNamespaceStep::kUpdateNsTable:
      return update_row(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.ModifyNamespace has no such step"});
}

ModifyNamespace::Flow ModifyNamespace::prepare(StepContext& ctx) {
  if (row_.name == kSystemNamespace) {
    return fail({StatusCode::kFailedPrecondition,
                 "namespace " + row_.name + " is the system's and cannot be modified"});
  }
  const auto* row = internal::read_namespace(ctx, *ports_, row_.name);
  const auto* tables = internal::tables_of(ctx, *ports_, row_.name);
  if (row == nullptr || tables == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (!tables->ok()) return retry(tables->status());
  if (!row->value()) {
    return fail({StatusCode::kNotFound, "namespace " + row_.name +
                                            " does not exist; list the namespaces to find its "
                                            "name"});
  }
  const std::size_t count = tables->value().size();
  if (row_.max_tables != 0 && count > row_.max_tables) {
    return fail({StatusCode::kFailedPrecondition,
                 "namespace " + row_.name + " has " + std::to_string(count) +
                     " tables, more than the limit of " + std::to_string(row_.max_tables) +
                     " that it would get; delete tables first, or set a higher limit"});
  }
  return next(ModifyNamespaceStep::kUpdateNsTable);
}

ModifyNamespace::Flow ModifyNamespace::update_row(StepContext& ctx) {
  CatalogueWrite row;
  row.namespaces = {row_};
  const auto* updated = internal::write(ctx, *ports_, "namespace", std::move(row));
  if (updated == nullptr) return wait();
  if (!updated->ok()) return retry(updated->status());
  return done(row_.name);
}

}  // namespace pv2
