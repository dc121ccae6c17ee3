// SPDX-License-Identifier: Apache-2.0
//
// The steps of DeleteTable. Each one removes what is there, and finds nothing to do when it runs
// again.

#include "pv2/procedures/delete_table.h"

#include "table_steps.h"

namespace pv2 {

LockSet DeleteTable::locks() const {
  return LockSet().table(table_.name_space, table_.table, LockMode::kExclusive);
}

DeleteTable::Flow DeleteTable::execute_from_state(DeleteTableStep step, StepContext& ctx) {
  switch (step) {
    case DeleteTableStep::kPreOperation:
      return pre_operation(ctx);
    case DeleteTableStep::kClearFsLayout:
      return clear_fs_layout(ctx);
    case DeleteTableStep::kRemoveFromMeta:
      return remove_from_meta(ctx);
    case DeleteTableStep::kUnassignRegions:
      return unassign_regions(ctx);
    case DeleteTableStep::kPostOperation:
      return post_operation(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.DeleteTable has no such step"});
}

DeleteTable::Flow DeleteTable::pre_operation(StepContext& ctx) {
  if (Status bad = internal::check_not_meta(table_, "deleted"); !bad.ok())
    return fail(std::move(bad));
  const auto* row = internal::read_table(ctx, *ports_, table_);
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (Status bad = internal::check_is(table_, row->value(), TableState::kDisabled); !bad.ok()) {
    return fail(std::move(bad));
  }
  return next(DeleteTableStep::kClearFsLayout);
}

DeleteTable::Flow DeleteTable::clear_fs_layout(StepContext& ctx) {
  const auto* archived = ctx.await<Status>([&](auto done) {
    ports_->files.archive_table(table_, ctx.effect_key() + "/archive", std::move(done));
  });
  if (archived == nullptr) return wait();
  if (!archived->ok()) return retry(*archived);
  return next(DeleteTableStep::kRemoveFromMeta);
}

DeleteTable::Flow DeleteTable::remove_from_meta(StepContext& ctx) {
  const auto removed = internal::remove_region_rows(ctx, *ports_, table_);
  if (!removed) return wait();
  if (!removed->ok()) return retry(*removed);
  const auto* refreshed = internal::refresh_cache(ctx, *ports_, table_);
  if (refreshed == nullptr) return wait();
  if (!refreshed->ok()) return retry(*refreshed);
  return next(DeleteTableStep::kUnassignRegions);
}

DeleteTable::Flow DeleteTable::unassign_regions(StepContext& ctx) {
  CatalogueWrite no_table;
  no_table.removed_tables = {table_};
  const auto* removed = internal::write(ctx, *ports_, "table", std::move(no_table));
  if (removed == nullptr) return wait();
  if (!removed->ok()) return retry(removed->status());
  return next(DeleteTableStep::kPostOperation);
}

DeleteTable::Flow DeleteTable::post_operation(StepContext& ctx) {
  const auto* row = internal::read_table(ctx, *ports_, table_);
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (row->value()) {
    return retry({StatusCode::kFailedPrecondition,
                  "table " + to_string(table_) + " is still in the catalogue"});
  }
  return done(to_string(table_));
}

}  // namespace pv2
