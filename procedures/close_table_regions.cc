// SPDX-License-Identifier: Apache-2.0
//
// The two steps of CloseTableRegions. It keeps no list of regions: the catalogue has it.

#include "pv2/procedures/close_table_regions.h"

#include <algorithm>

#include "pv2/procedures/transit_region_state.h"
#include "table_steps.h"

namespace pv2 {

LockSet CloseTableRegions::locks() const {
  return LockSet().table(table_.name_space, table_.table, LockMode::kExclusive);
}

CloseTableRegions::Flow CloseTableRegions::execute_from_state(CloseTableRegionsStep step,
                                                              StepContext& ctx) {
  switch (step) {
    case CloseTableRegionsStep::kSchedule:
      return schedule(ctx);
    case CloseTableRegionsStep::kConfirm:
      return confirm(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.CloseTableRegions has no such step"});
}

CloseTableRegions::Flow CloseTableRegions::schedule(StepContext& ctx) {
  const auto* rows = internal::read_regions(ctx, *ports_, table_);
  if (rows == nullptr) return wait();
  if (!rows->ok()) return retry(rows->status());
  internal::SpawnRound round;
  for (const RegionRow& row : rows->value()) {
    if (!is_placed(row.state)) continue;
    if (!round.takes(row.region)) break;  // the next step looks, and comes back for the rest
    ctx.spawn(TransitRegionState::unassign(*ports_, row.region));
  }
  return next(CloseTableRegionsStep::kConfirm);
}

CloseTableRegions::Flow CloseTableRegions::confirm(StepContext& ctx) {
  const auto* rows = internal::read_regions(ctx, *ports_, table_);
  if (rows == nullptr) return wait();
  if (!rows->ok()) return retry(rows->status());
  const auto is_closed = [](const RegionRow& row) { return !is_placed(row.state); };
  if (!std::ranges::all_of(rows->value(), is_closed)) return next(CloseTableRegionsStep::kSchedule);
  return done(to_string(table_));
}

}  // namespace pv2
