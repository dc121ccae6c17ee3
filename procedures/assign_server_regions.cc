// SPDX-License-Identifier: Apache-2.0
//
// The steps of AssignServerRegions. A row may leave the dead server at any time, because of a
// procedure that had begun before. None comes to it, except one that was being written when the
// server was recorded as dead.

#include "pv2/procedures/assign_server_regions.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/procedures/transit_region_state.h"
#include "table_steps.h"

namespace pv2 {
namespace {

// How many rows one write of the catalogue marks. 512: about 60 kB, so that the log of the
// catalogue is not blocked for long, and 3000 regions are marked in six writes.
constexpr std::size_t kRowsPerWrite = 512;

// The first rows, for whose regions one step can start children. All have room, unless an earlier
// version has stored the ServerCrash, or a row has come late. ServerCrash starts another group for
// the regions that have no room, in its step CHECK.
std::span<const RegionRow> with_room(const std::vector<RegionRow>& rows) {
  internal::SpawnRound round;
  const auto end = std::ranges::find_if(
      rows, [&round](const RegionRow& row) { return !round.takes(row.region); });
  return {rows.begin(), end};
}

std::vector<CatalogueWrite> closing_writes(std::span<const RegionRow> rows, const ServerName& dead,
                                           std::string_view effect_key) {
  std::vector<CatalogueWrite> writes;
  for (const RegionRow& row : rows) {
    if (row.state == RegionState::kAbnormallyClosed) continue;
    // The row of the catalogue's own region is kept elsewhere, and written alone.
    const bool begins = writes.empty() || writes.back().regions.size() == kRowsPerWrite ||
                        is_meta(row.region.table) ||
                        is_meta(writes.back().regions.front().region.table);
    if (begins) {
      writes.push_back({.effect_key = std::string(effect_key) + "/closed/" + row.region.id});
    }
    writes.back().regions.push_back({row.region, RegionState::kAbnormallyClosed, dead});
  }
  return writes;
}

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

  const std::span<const RegionRow> group = with_room(rows->value());
  if (auto flow = mark_closed(group, rows->value().size(), ctx)) return *std::move(flow);
  std::uint32_t spread = 0;
  for (const RegionRow& row : group) {
    ctx.spawn(TransitRegionState::assign(*ports_, row.region, {.spread = spread++, .from = dead_}));
  }
  return next(Step::kFinish);
}

std::optional<AssignServerRegions::Flow> AssignServerRegions::mark_closed(
    std::span<const RegionRow> group, std::size_t rows, StepContext& ctx) {
  for (const CatalogueWrite& write : closing_writes(group, dead_, ctx.effect_key())) {
    const auto* marked = ctx.await<Result<Applied>>(
        [&](auto done) { ports_->catalogue.write(write, std::move(done)); });
    if (marked == nullptr) return wait();
    if (marked->status().code() == StatusCode::kFailedPrecondition) {
      // Nothing of this write was written. If a row names another server by now, the step begins
      // again without it. If none does, the refusal has another cause, which a pause may end.
      const auto* left = ctx.await<Result<std::vector<RegionRow>>>(
          [&](auto done) { ports_->catalogue.regions_on(dead_, ids_, std::move(done)); });
      if (left == nullptr) return wait();
      if (!left->ok()) return retry(left->status());
      if (left->value().size() < rows) return next(Step::kSchedule);
    }
    if (!marked->ok()) return retry(marked->status());
  }
  return std::nullopt;
}

}  // namespace pv2
