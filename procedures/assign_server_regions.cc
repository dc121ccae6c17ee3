// SPDX-License-Identifier: Apache-2.0
//
// The steps of AssignServerRegions. A row may leave the dead server at any time, because of a
// procedure that had begun before. None comes to it, except one that was being written when the
// server was recorded as dead.

#include "pv2/procedures/assign_server_regions.h"

#include <cstdint>
#include <string>
#include <vector>

#include "pv2/procedures/transit_region_state.h"
#include "table_steps.h"

namespace pv2 {
namespace {

// How many rows one write of the catalogue marks. 512: about 60 kB, so that the log of the
// catalogue is not blocked for long, and 3000 regions are marked in six writes.
constexpr std::size_t kRowsPerWrite = 512;

}  // namespace

AssignServerRegions::Flow AssignServerRegions::execute_from_state(Step step, StepContext& ctx) {
  switch (step) {
    case Step::kSchedule:
      return schedule(ctx);
    case Step::kFinish:
      return done(to_string(dead_));
  }
  return fail({StatusCode::kInternal, "cluster.AssignServerRegions has no such step"});
}

AssignServerRegions::Flow AssignServerRegions::schedule(StepContext& ctx) {
  const auto* rows = ctx.await<Result<std::vector<RegionRow>>>(
      [&](auto done) { ports_->catalogue.regions_on(dead_, ids_, std::move(done)); });
  if (rows == nullptr) return wait();
  if (!rows->ok()) return retry(rows->status());

  std::vector<CatalogueWrite> writes;
  std::vector<const RegionInfo*> regions;
  internal::SpawnRound round;
  for (const RegionRow& row : rows->value()) {
    // All regions have room, unless an earlier version has stored the ServerCrash, or a row has
    // come late. ServerCrash starts another group for the regions that have no room, in its step
    // CHECK.
    if (!round.takes(row.region)) break;
    regions.push_back(&row.region);
    if (row.state == RegionState::kAbnormallyClosed) continue;
    // The row of the catalogue's own region is kept elsewhere, and written alone.
    const bool begins = writes.empty() || writes.back().regions.size() == kRowsPerWrite ||
                        is_meta(row.region.table) ||
                        is_meta(writes.back().regions.front().region.table);
    if (begins) writes.push_back({.effect_key = ctx.effect_key() + "/closed/" + row.region.id});
    writes.back().regions.push_back({row.region, RegionState::kAbnormallyClosed, dead_});
  }
  for (const CatalogueWrite& write : writes) {
    const auto* marked = ctx.await<Result<Applied>>(
        [&](auto done) { ports_->catalogue.write(write, std::move(done)); });
    if (marked == nullptr) return wait();
    if (marked->status().code() == StatusCode::kFailedPrecondition) {
      // A row has come to name another server, and nothing of this write was written. If none has,
      // something else is wrong: with a pause.
      const auto* left = ctx.await<Result<std::vector<RegionRow>>>(
          [&](auto done) { ports_->catalogue.regions_on(dead_, ids_, std::move(done)); });
      if (left == nullptr) return wait();
      if (!left->ok()) return retry(left->status());
      if (left->value().size() < rows->value().size()) return next(Step::kSchedule);
    }
    if (!marked->ok()) return retry(marked->status());
  }
  std::uint32_t spread = 0;
  for (const RegionInfo* const region : regions) {
    ctx.spawn(TransitRegionState::assign(*ports_, *region, {.spread = spread++, .from = dead_}));
  }
  return next(Step::kFinish);
}

}  // namespace pv2
