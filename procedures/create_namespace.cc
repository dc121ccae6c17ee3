// SPDX-License-Identifier: Apache-2.0
//
// The steps of CreateNamespace. The directory is made before the row, so a namespace that can be
// seen is whole.

#include "pv2/procedures/create_namespace.h"

#include "table_steps.h"

namespace pv2 {

LockSet CreateNamespace::locks() const {
  return LockSet().name_space(row_.name, LockMode::kExclusive);
}

CreateNamespace::Flow CreateNamespace::execute_from_state(CreateNamespaceStep step,
                                                          StepContext& ctx) {
  switch (step) {
    case CreateNamespaceStep::kPrepare:
      return prepare(ctx);
    case CreateNamespaceStep::kCreateDirectory:
      return create_directory(ctx);
    case CreateNamespaceStep::kInsertIntoNsTable:
      return insert_row(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.CreateNamespace has no such step"});
}

CreateNamespace::Flow CreateNamespace::prepare(StepContext& ctx) {
  if (Status bad = check_name("namespace", row_.name, false); !bad.ok()) {
    return fail(std::move(bad));
  }
  const auto exists = [this] {
    return fail({StatusCode::kAlreadyExists,
                 "namespace " + row_.name + " exists already; choose another name"});
  };
  // The catalogue's region is in it. Whoever keeps the lock of this namespace while it waits for
  // the catalogue would keep the catalogue from coming back when its server dies.
  if (row_.name == kSystemNamespace) return exists();
  const auto* row = internal::read_namespace(ctx, *ports_, row_.name);
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (row->value()) return exists();
  return next(CreateNamespaceStep::kCreateDirectory);
}

CreateNamespace::Flow CreateNamespace::create_directory(StepContext& ctx) {
  const auto* made = ctx.await<Status>([&](auto done) {
    ports_->files.make_namespace(row_.name, ctx.effect_key() + "/directory", std::move(done));
  });
  if (made == nullptr) return wait();
  if (!made->ok()) return retry(*made);
  return next(CreateNamespaceStep::kInsertIntoNsTable);
}

CreateNamespace::Flow CreateNamespace::insert_row(StepContext& ctx) {
  CatalogueWrite row;
  row.namespaces = {row_};
  const auto* inserted = internal::write(ctx, *ports_, "namespace", std::move(row));
  if (inserted == nullptr) return wait();
  if (!inserted->ok()) return retry(inserted->status());
  return done(row_.name);
}

}  // namespace pv2
