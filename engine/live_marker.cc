// SPDX-License-Identifier: Apache-2.0
//
// A section of the state mutex looks at a bounded number of ids, so procedures may end between two
// of them: a mark may name some that have ended, never leave out one that is live.

#include "live_marker.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pv2 {
namespace {

// Ids looked at in one section, and roots of which rows are given to the store.
constexpr std::size_t kIdsAtOnce = 512;
constexpr std::size_t kRootsAtOnce = 64;

void lower(LiveMark& mark, ProcedureId from) {
  mark.from = from;
  mark.below.erase(std::lower_bound(mark.below.begin(), mark.below.end(), from), mark.below.end());
}

}  // namespace

void LiveMarker::mark() {
  delete_what_was_dropped();
  std::optional<ProcedureId> highest;
  {
    StateLock lock(core_);
    highest = highest_mark();
  }
  LiveMark mark;
  if (highest) mark = name_live_below(*highest);
  {
    StateLock lock(core_);
    // A tree may have ended after its root was named, and its members left before they were.
    highest = highest_mark();
  }
  if (highest && *highest < mark.from) lower(mark, *highest);
  std::string row;
  const bool is_news = highest && written_ < mark.from;
  if (is_news) encode_live_mark(mark, row);
  Effects effects;
  {
    StateLock lock(core_);
    core_.state.next_live_mark = core_.state.next_id + every_;
    if (!is_news || !core_.unavailable().ok()) return;
    written_ = mark.from;
    core_.state.rows_to_write.emplace_back(kLiveMarkKey, std::move(row));
    if (core_.state.watermark_on_the_way) return;  // the next one takes it along
    core_.write_watermark(core_.state.durable_watermark, {}, effects);
  }
  publisher_.perform(effects);
}

// Of members that have left and are deleted with others: a tree that goes on for months may always
// have some, and no mark is above them.
void LiveMarker::delete_what_was_dropped() {
  for (bool more = true; more;) {
    Effects effects;
    {
      StateLock lock(core_);
      if (!core_.unavailable().ok()) return;
      auto& dropped = core_.state.dropped;
      for (std::size_t i = 0; i < kRootsAtOnce && !dropped.empty(); ++i) {
        effects.garbage.push_back(std::move(dropped.begin()->second));
        dropped.erase(dropped.begin());
      }
      more = !dropped.empty();
    }
    publisher_.perform(effects);
  }
}

std::optional<ProcedureId> LiveMarker::highest_mark() {
  const EngineState& state = core_.state;
  if (!state.unreadable.empty() || !core_.unavailable().ok()) return std::nullopt;
  ProcedureId highest{state.next_id};
  if (!state.issued_from.empty()) highest = std::min(highest, *state.issued_from.begin());
  if (!state.garbage_from.empty()) highest = std::min(highest, *state.garbage_from.begin());
  if (!highest) return std::nullopt;
  return highest;
}

LiveMark LiveMarker::name_live_below(ProcedureId highest) {
  LiveMark mark;
  mark.from = highest;
  ProcedureId after;
  bool more = true;
  while (more) {
    StateLock lock(core_);
    bool enough = false;
    after = core_.state.live.visit_after(after, kIdsAtOnce, [&](const Execution& execution) {
      if (mark.below.size() == kNamesMax) mark.from = std::min(mark.from, execution.id);
      enough = !(execution.id < mark.from);
      if (!enough) mark.below.push_back(execution.id);
      return !enough;
    });
    more = after && !enough;
  }
  return mark;
}

}  // namespace pv2
