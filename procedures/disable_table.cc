// SPDX-License-Identifier: Apache-2.0
//
// The steps of DisableTable. It closes nothing itself, and does not trust its child:
// SET_DISABLED_TABLE_STATE looks at the regions again.

#include "pv2/procedures/disable_table.h"

#include <algorithm>

#include "pv2/procedures/close_table_regions.h"
#include "table_steps.h"

namespace pv2 {

LockSet DisableTable::locks() const {
  return LockSet().table(table_.name_space, table_.table, LockMode::kExclusive);
}

DisableTable::Flow DisableTable::execute_from_state(DisableTableStep step, StepContext& ctx) {
  switch (step) {
    case DisableTableStep::kPrepare:
      return prepare(ctx);
    case DisableTableStep::kSetDisablingTableState:
      return set_disabling(ctx);
    case DisableTableStep::kMarkRegionsOffline:
      return mark_regions_offline(ctx);
    case DisableTableStep::kSetDisabledTableState:
      return set_disabled(ctx);
    case DisableTableStep::kPostOperation:
      return post_operation(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.DisableTable has no such step"});
}

DisableTable::Flow DisableTable::prepare(StepContext& ctx) {
  if (Status bad = internal::check_not_meta(table_, "disabled"); !bad.ok())
    return fail(std::move(bad));
  const auto* row = internal::read_table(ctx, *ports_, table_);
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (Status bad = internal::check_exists(table_, row->value()); !bad.ok()) {
    return fail(std::move(bad));
  }
  if (row->value()->state == TableState::kDisabled) {
    return fail(
        {StatusCode::kFailedPrecondition, "table " + to_string(table_) + " is disabled already"});
  }
  descriptor_ = row->value()->descriptor;
  return next(DisableTableStep::kSetDisablingTableState);
}

DisableTable::Flow DisableTable::set_disabling(StepContext& ctx) {
  const auto* disabling = internal::write(ctx, *ports_, "disabling",
                                          internal::set_table(descriptor_, TableState::kDisabling));
  if (disabling == nullptr) return wait();
  if (!disabling->ok()) return retry(disabling->status());
  return next(DisableTableStep::kMarkRegionsOffline);
}

DisableTable::Flow DisableTable::mark_regions_offline(StepContext& ctx) {
  ctx.spawn(CloseTableRegions(*ports_, table_));
  return next(DisableTableStep::kSetDisabledTableState);
}

DisableTable::Flow DisableTable::set_disabled(StepContext& ctx) {
  const auto* rows = internal::read_regions(ctx, *ports_, table_);
  if (rows == nullptr) return wait();
  if (!rows->ok()) return retry(rows->status());
  const auto is_closed = [](const RegionRow& row) { return !is_placed(row.state); };
  if (!std::ranges::all_of(rows->value(), is_closed)) {
    return next(DisableTableStep::kMarkRegionsOffline);
  }
  const auto* disabled = internal::write(ctx, *ports_, "disabled",
                                         internal::set_table(descriptor_, TableState::kDisabled));
  if (disabled == nullptr) return wait();
  if (!disabled->ok()) return retry(disabled->status());
  return next(DisableTableStep::kPostOperation);
}

DisableTable::Flow DisableTable::post_operation(StepContext& ctx) {
  const auto* row = internal::read_table(ctx, *ports_, table_);
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (Status bad = internal::check_is(table_, row->value(), TableState::kDisabled); !bad.ok()) {
    return retry(std::move(bad));
  }
  return done(to_string(table_));
}

}  // namespace pv2
