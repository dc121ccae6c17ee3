// SPDX-License-Identifier: Apache-2.0
//
// The steps of DeleteNamespace. The row goes first, so a namespace that can be seen is whole.

#include "pv2/procedures/delete_namespace.h"

#include "table_steps.h"

namespace pv2 {

LockSet DeleteNamespace::locks() const { return LockSet().name_space(name_, LockMode::kExclusive); }

DeleteNamespace::Flow DeleteNamespace::execute_from_state(DeleteNamespaceStep step,
                                                          StepContext& ctx) {
  switch (step) {
    case DeleteNamespaceStep::kPrepare:
      return prepare(ctx);
    case DeleteNamespaceStep::kDeleteFromNsTable:
      return delete_row(ctx);
    case DeleteNamespaceStep::kDeleteDirectories:
      return delete_directories(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.DeleteNamespace has no such step"});
}

DeleteNamespace::Flow DeleteNamespace::prepare(StepContext& ctx) {
  if (name_ == kDefaultNamespace || name_ == kSystemNamespace) {
    return fail({StatusCode::kFailedPrecondition,
                 "namespace " + name_ + " is reserved and cannot be deleted"});
  }
  const auto* row = internal::read_namespace(ctx, *ports_, name_);
  const auto* tables = internal::tables_of(ctx, *ports_, name_);
  if (row == nullptr || tables == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (!tables->ok()) return retry(tables->status());
  if (!row->value()) {
    return fail({StatusCode::kNotFound,
                 "namespace " + name_ + " does not exist; list the namespaces to find its name"});
  }
  if (!tables->value().empty()) {
    return fail({StatusCode::kFailedPrecondition,
                 "namespace " + name_ + " has " + std::to_string(tables->value().size()) +
                     " tables, " + to_string(tables->value().front()) +
                     " among them; delete them first"});
  }
  return next(DeleteNamespaceStep::kDeleteFromNsTable);
}

DeleteNamespace::Flow DeleteNamespace::delete_row(StepContext& ctx) {
  CatalogueWrite no_row;
  no_row.removed_namespaces = {name_};
  const auto* removed = internal::write(ctx, *ports_, "namespace", std::move(no_row));
  if (removed == nullptr) return wait();
  if (!removed->ok()) return retry(removed->status());
  return next(DeleteNamespaceStep::kDeleteDirectories);
}

DeleteNamespace::Flow DeleteNamespace::delete_directories(StepContext& ctx) {
  const auto* removed = ctx.await<Status>([&](auto done) {
    ports_->files.remove_namespace(name_, ctx.effect_key() + "/directory", std::move(done));
  });
  if (removed == nullptr) return wait();
  if (!removed->ok()) return retry(*removed);
  return done(name_);
}

}  // namespace pv2
