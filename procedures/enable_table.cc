// SPDX-License-Identifier: Apache-2.0
//
// The steps of EnableTable. SET_ENABLED_TABLE_STATE does not trust the children: it looks at the
// regions again, because a server may have died meanwhile.

#include "pv2/procedures/enable_table.h"

#include <algorithm>
#include <optional>

#include "pv2/procedures/transit_region_state.h"
#include "table_steps.h"

namespace pv2 {

LockSet EnableTable::locks() const {
  return LockSet().table(table_.name_space, table_.table, LockMode::kExclusive);
}

EnableTable::Flow EnableTable::execute_from_state(EnableTableStep step, StepContext& ctx) {
  switch (step) {
    case EnableTableStep::kPrepare:
      return prepare(ctx);
    case EnableTableStep::kSetEnablingTableState:
      return set_enabling(ctx);
    case EnableTableStep::kMarkRegionsOnline:
      return mark_regions_online(ctx);
    case EnableTableStep::kSetEnabledTableState:
      return set_enabled(ctx);
    case EnableTableStep::kPostOperation:
      return post_operation(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.EnableTable has no such step"});
}

EnableTable::Flow EnableTable::prepare(StepContext& ctx) {
  if (Status bad = internal::check_not_meta(table_, "enabled"); !bad.ok()) {
    return fail(std::move(bad));
  }
  const auto* row = internal::read_table(ctx, *ports_, table_);
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (Status bad = internal::check_is(table_, row->value(), TableState::kDisabled); !bad.ok()) {
    return fail(std::move(bad));
  }
  const auto* kept = ctx.await<Result<std::optional<TableDescriptor>>>(
      [&](auto done) { ports_->files.read_descriptor(table_, std::move(done)); });
  if (kept == nullptr) return wait();
  if (kept->status().code() == StatusCode::kCorruption) {  // asking again does not mend it
    return fail(kept->status().with_context("the descriptor of table " + to_string(table_) +
                                            " is damaged; restore the directory, or modify or "
                                            "delete the table"));
  }
  if (!kept->ok()) return retry(kept->status());
  if (!kept->value()) {
    return fail({StatusCode::kFailedPrecondition,
                 "table " + to_string(table_) +
                     " has no descriptor in its directory, so no server can open it; restore the "
                     "directory, or delete the table"});
  }
  descriptor_ = row->value()->descriptor;
  return next(EnableTableStep::kSetEnablingTableState);
}

EnableTable::Flow EnableTable::set_enabling(StepContext& ctx) {
  const auto* enabling = internal::write(ctx, *ports_, "enabling",
                                         internal::set_table(descriptor_, TableState::kEnabling));
  if (enabling == nullptr) return wait();
  if (!enabling->ok()) return retry(enabling->status());
  return next(EnableTableStep::kMarkRegionsOnline);
}

EnableTable::Flow EnableTable::mark_regions_online(StepContext& ctx) {
  const auto* rows = internal::read_regions(ctx, *ports_, table_);
  if (rows == nullptr) return wait();
  if (!rows->ok()) return retry(rows->status());
  std::uint32_t spread = 0;
  internal::SpawnRound round;
  for (const RegionRow& row : rows->value()) {
    if (row.state == RegionState::kSplit || row.state == RegionState::kOpen) continue;
    if (!round.takes(row.region)) break;  // the next step looks, and comes back for the rest
    ctx.spawn(
        TransitRegionState::assign(*ports_, row.region, {.spread = spread++, .retain = true}));
  }
  return next(EnableTableStep::kSetEnabledTableState);
}

EnableTable::Flow EnableTable::set_enabled(StepContext& ctx) {
  const auto* rows = internal::read_regions(ctx, *ports_, table_);
  if (rows == nullptr) return wait();
  if (!rows->ok()) return retry(rows->status());
  const auto is_online = [](const RegionRow& row) {
    return row.state == RegionState::kOpen || row.state == RegionState::kSplit;
  };
  if (!std::ranges::all_of(rows->value(), is_online)) {
    return next(EnableTableStep::kMarkRegionsOnline);
  }
  const auto* enabled = internal::write(ctx, *ports_, "enabled",
                                        internal::set_table(descriptor_, TableState::kEnabled));
  if (enabled == nullptr) return wait();
  if (!enabled->ok()) return retry(enabled->status());
  const auto* refreshed = internal::refresh_cache(ctx, *ports_, table_);
  if (refreshed == nullptr) return wait();
  if (!refreshed->ok()) return retry(*refreshed);
  return next(EnableTableStep::kPostOperation);
}

EnableTable::Flow EnableTable::post_operation(StepContext& ctx) {
  const auto* row = internal::read_table(ctx, *ports_, table_);
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (Status bad = internal::check_is(table_, row->value(), TableState::kEnabled); !bad.ok()) {
    return retry(std::move(bad));
  }
  return done(to_string(table_));
}

}  // namespace pv2
