// SPDX-License-Identifier: Apache-2.0
//
// The steps of TruncateTable: DeleteTable's, without the table's row, then CreateTable's.

#include "pv2/procedures/truncate_table.h"

#include <string>

#include "pv2/procedures/transit_region_state.h"
#include "table_steps.h"

namespace pv2 {

LockSet TruncateTable::locks() const {
  return LockSet().table(table_.name_space, table_.table, LockMode::kExclusive);
}

TruncateTable::Flow TruncateTable::execute_from_state(TruncateTableStep step, StepContext& ctx) {
  switch (step) {
    case TruncateTableStep::kPreOperation:
      return pre_operation(ctx);
    case TruncateTableStep::kClearFsLayout:
      return clear_fs_layout(ctx);
    case TruncateTableStep::kRemoveFromMeta:
      return remove_from_meta(ctx);
    case TruncateTableStep::kCreateFsLayout:
      return create_fs_layout(ctx);
    case TruncateTableStep::kAddToMeta:
      return add_to_meta(ctx);
    case TruncateTableStep::kAssignRegions:
      return assign_regions(ctx);
    case TruncateTableStep::kPostOperation:
      return post_operation(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.TruncateTable has no such step"});
}

TruncateTable::Flow TruncateTable::pre_operation(StepContext& ctx) {
  if (Status bad = internal::check_not_meta(table_, "truncated"); !bad.ok()) {
    return fail(std::move(bad));
  }
  const auto* row = internal::read_table(ctx, *ports_, table_);
  const auto* rows = internal::read_regions(ctx, *ports_, table_);
  if (row == nullptr || rows == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (!rows->ok()) return retry(rows->status());
  if (Status bad = internal::check_is(table_, row->value(), TableState::kDisabled); !bad.ok()) {
    return fail(std::move(bad));
  }
  std::vector<std::string> split_keys;
  if (splits_ == TruncateSplits::kPreserve) {
    for (const RegionRow& region : rows->value()) {
      const bool is_first = region.region.start_key.empty();
      if (region.state != RegionState::kSplit && !is_first) {
        split_keys.push_back(region.region.start_key);
      }
    }
  }
  descriptor_ = row->value()->descriptor;
  // The ids depend on this procedure's id, so no region that goes has one of them.
  regions_ = regions_of(table_, std::move(split_keys), ctx.id().value);
  if (Status bad = internal::check_regions(regions_); !bad.ok()) {
    return fail(bad.with_context("table " + to_string(table_) +
                                 " has too many regions to keep; truncate it without its splits"));
  }
  return next(TruncateTableStep::kClearFsLayout);
}

TruncateTable::Flow TruncateTable::clear_fs_layout(StepContext& ctx) {
  const auto* archived = ctx.await<Status>([&](auto done) {
    ports_->files.archive_table(table_, ctx.effect_key() + "/archive", std::move(done));
  });
  if (archived == nullptr) return wait();
  if (!archived->ok()) return retry(*archived);
  return next(TruncateTableStep::kRemoveFromMeta);
}

TruncateTable::Flow TruncateTable::remove_from_meta(StepContext& ctx) {
  const auto removed = internal::remove_region_rows(ctx, *ports_, table_);
  if (!removed) return wait();
  if (!removed->ok()) return retry(*removed);
  return next(TruncateTableStep::kCreateFsLayout);
}

TruncateTable::Flow TruncateTable::create_fs_layout(StepContext& ctx) {
  const auto* written = ctx.await<Status>([&](auto done) {
    ports_->files.write_layout(descriptor_, regions_, ctx.effect_key() + "/layout",
                               std::move(done));
  });
  if (written == nullptr) return wait();
  if (!written->ok()) return retry(*written);
  return next(TruncateTableStep::kAddToMeta);
}

TruncateTable::Flow TruncateTable::add_to_meta(StepContext& ctx) {
  const auto* added = internal::write(ctx, *ports_, "regions", internal::add_closed(regions_));
  if (added == nullptr) return wait();
  if (!added->ok()) return retry(added->status());
  return next(TruncateTableStep::kAssignRegions);
}

TruncateTable::Flow TruncateTable::assign_regions(StepContext& ctx) {
  const auto* enabling = internal::write(ctx, *ports_, "enabling",
                                         internal::set_table(descriptor_, TableState::kEnabling));
  if (enabling == nullptr) return wait();
  if (!enabling->ok()) return retry(enabling->status());
  internal::SpawnRound round;
  for (; assigned_ < regions_.size() && round.takes(regions_[assigned_]); ++assigned_) {
    ctx.spawn(TransitRegionState::assign(*ports_, regions_[assigned_], {.spread = assigned_}));
  }
  return next(assigned_ < regions_.size() ? TruncateTableStep::kAssignRegions
                                          : TruncateTableStep::kPostOperation);
}

TruncateTable::Flow TruncateTable::post_operation(StepContext& ctx) {
  const auto* enabled = internal::write(ctx, *ports_, "enabled",
                                        internal::set_table(descriptor_, TableState::kEnabled));
  if (enabled == nullptr) return wait();
  if (!enabled->ok()) return retry(enabled->status());
  const auto* refreshed = internal::refresh_cache(ctx, *ports_, table_);
  if (refreshed == nullptr) return wait();
  if (!refreshed->ok()) return retry(*refreshed);
  return done(to_string(table_));
}

}  // namespace pv2
