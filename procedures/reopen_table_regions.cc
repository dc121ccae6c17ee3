// SPDX-License-Identifier: Apache-2.0
//
// The steps of ReopenTableRegions, and what proves that a region was reopened.

#include "pv2/procedures/reopen_table_regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "pv2/procedures/transit_region_state.h"
#include "table_steps.h"

namespace pv2 {
namespace {

// The pause when no region of a batch was reopened although every child has succeeded: whatever
// moves the regions needs some time. One second, as after a round of refusals.
constexpr Duration kNoProgressPause = std::chrono::seconds(1);

/// Whether the region uses the new descriptor, or will when it is opened. Corrects what is known of
/// a region that was being opened when it was looked at first.
bool is_reopened(RegionToReopen& region, const std::map<std::string, RegionRow>& rows) {
  const auto found = rows.find(region.region.id);
  if (found == rows.end() || !is_placed(found->second.state)) return true;
  const RegionRow& row = found->second;
  if (!region.was_opening) return row.open_sequence > region.sequence;
  if (row.state != RegionState::kOpening) {
    region.sequence = row.open_sequence;
    region.was_opening = false;
  }
  return false;
}

}  // namespace

LockSet ReopenTableRegions::locks() const {
  return LockSet().table(table_.name_space, table_.table, LockMode::kExclusive);
}

ReopenTableRegions::Flow ReopenTableRegions::execute_from_state(ReopenTableRegionsStep step,
                                                                StepContext& ctx) {
  switch (step) {
    case ReopenTableRegionsStep::kGetRegions:
      return get_regions(ctx);
    case ReopenTableRegionsStep::kReopen:
      return reopen(ctx);
    case ReopenTableRegionsStep::kConfirm:
      return confirm(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.ReopenTableRegions has no such step"});
}

ReopenTableRegions::Flow ReopenTableRegions::get_regions(StepContext& ctx) {
  const auto* rows = internal::read_regions(ctx, *ports_, table_);
  if (rows == nullptr) return wait();
  if (!rows->ok()) return retry(rows->status());
  for (const RegionRow& row : rows->value()) {
    if (!is_placed(row.state)) continue;
    left_.push_back({row.region, row.open_sequence, row.state == RegionState::kOpening});
  }
  if (left_.empty()) return done(to_string(table_));
  total_ = left_.size();
  return next(ReopenTableRegionsStep::kReopen);
}

std::string ReopenTableRegions::progress() const {
  if (total_ == 0) return {};
  return fmt::format("{} of the table's {} regions reopened before", total_ - left_.size(), total_);
}

ReopenTableRegions::Flow ReopenTableRegions::reopen(StepContext& ctx) {
  const std::size_t count = std::min<std::size_t>(batch_, left_.size());
  for (std::size_t i = 0; i < count; ++i) {
    ctx.spawn(TransitRegionState::reopen(*ports_, left_[i].region));
  }
  return next(ReopenTableRegionsStep::kConfirm);
}

ReopenTableRegions::Flow ReopenTableRegions::confirm(StepContext& ctx) {
  const auto* read = internal::read_regions(ctx, *ports_, table_);
  if (read == nullptr) return wait();
  if (!read->ok()) return retry(read->status());
  std::map<std::string, RegionRow> rows;
  for (const RegionRow& row : read->value()) rows.emplace(row.region.id, row);

  const auto asked = static_cast<std::ptrdiff_t>(std::min<std::size_t>(batch_, left_.size()));
  const auto end = left_.begin() + asked;
  const auto kept = std::remove_if(
      left_.begin(), end, [&](RegionToReopen& region) { return is_reopened(region, rows); });
  const std::ptrdiff_t reopened = end - kept;
  left_.erase(kept, end);
  if (left_.empty()) return done(to_string(table_));
  if (reopened == 0 && !ctx.timed_out()) return wait_for(kNoProgressPause);
  if (reopened == asked) batch_ = std::min(batch_ * 2, kBatchMax);
  return next(ReopenTableRegionsStep::kReopen);
}

}  // namespace pv2
