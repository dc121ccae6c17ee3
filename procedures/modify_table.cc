// SPDX-License-Identifier: Apache-2.0
//
// The steps of ModifyTable. The file is written before the row: a region that is opened in between
// uses the new descriptor, and is reopened for nothing.

#include "pv2/procedures/modify_table.h"

#include <string>

#include "pv2/procedures/reopen_table_regions.h"
#include "table_steps.h"

namespace pv2 {

LockSet ModifyTable::locks() const {
  return LockSet().table(descriptor_.name.name_space, descriptor_.name.table, LockMode::kExclusive);
}

ModifyTable::Flow ModifyTable::execute_from_state(ModifyTableStep step, StepContext& ctx) {
  switch (step) {
    case ModifyTableStep::kPrepare:
      return prepare(ctx);
    case ModifyTableStep::kPreOperation:
      return pre_operation();
    case ModifyTableStep::kUpdateTableDescriptor:
      return update_table_descriptor(ctx);
    case ModifyTableStep::kPostOperation:
      return post_operation(ctx);
    case ModifyTableStep::kReopenAllRegions:
      return reopen_all_regions(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.ModifyTable has no such step"});
}

ModifyTable::Flow ModifyTable::prepare(StepContext& ctx) {
  const TableName& table = descriptor_.name;
  if (Status bad = check_descriptor(descriptor_); !bad.ok()) return fail(std::move(bad));
  if (Status bad = internal::check_not_meta(table, "modified"); !bad.ok()) {
    return fail(std::move(bad));
  }
  const auto* row = internal::read_table(ctx, *ports_, table);
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (Status bad = internal::check_exists(table, row->value()); !bad.ok()) {
    return fail(std::move(bad));
  }
  old_ = *row->value();
  if (old_.state != TableState::kEnabled && old_.state != TableState::kDisabled) {
    return fail({StatusCode::kFailedPrecondition,
                 "table " + to_string(table) + " is " + std::string(to_string(old_.state)) +
                     ", which an operation has left behind; disable it first"});
  }
  if (expected_ && *expected_ != old_.descriptor) {
    return fail({StatusCode::kFailedPrecondition,
                 "table " + to_string(table) +
                     " does not have the expected descriptor: it was modified meanwhile; read it "
                     "again and repeat the change"});
  }
  return next(ModifyTableStep::kPreOperation);
}

ModifyTable::Flow ModifyTable::pre_operation() {
  reopens_ = old_.state == TableState::kEnabled;
  return next(ModifyTableStep::kUpdateTableDescriptor);
}

ModifyTable::Flow ModifyTable::update_table_descriptor(StepContext& ctx) {
  const auto* written = ctx.await<Status>([&](auto done) {
    ports_->files.write_descriptor(descriptor_, ctx.effect_key() + "/descriptor", std::move(done));
  });
  if (written == nullptr) return wait();
  if (!written->ok()) return retry(*written);
  const auto* recorded =
      internal::write(ctx, *ports_, "table", internal::set_table(descriptor_, old_.state));
  if (recorded == nullptr) return wait();
  if (!recorded->ok()) return retry(recorded->status());
  const auto* refreshed = internal::refresh_cache(ctx, *ports_, descriptor_.name);
  if (refreshed == nullptr) return wait();
  if (!refreshed->ok()) return retry(*refreshed);
  return next(ModifyTableStep::kPostOperation);
}

ModifyTable::Flow ModifyTable::post_operation(StepContext& ctx) {
  const auto* row = internal::read_table(ctx, *ports_, descriptor_.name);
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (!row->value() || row->value()->descriptor != descriptor_) {
    return retry(
        {StatusCode::kFailedPrecondition,
         "the catalogue does not have the new descriptor of table " + to_string(descriptor_.name)});
  }
  if (reopens_) return next(ModifyTableStep::kReopenAllRegions);
  return done(to_string(descriptor_.name));
}

ModifyTable::Flow ModifyTable::reopen_all_regions(StepContext& ctx) {
  ctx.spawn(ReopenTableRegions(*ports_, descriptor_.name));
  return done(to_string(descriptor_.name));
}

}  // namespace pv2
