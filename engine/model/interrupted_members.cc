// SPDX-License-Identifier: Apache-2.0
//
// From candidates to ranges. A range goes from one interrupted candidate to another; the ids
// between them are interrupted candidates or no candidates at all, unless ranges had to be joined.

#include "model/interrupted_members.h"

#include <pv2/base/assert.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "model/check_limits.h"

namespace pv2 {
namespace {

using Range = InterruptedMembers::Range;

// Joins ranges until there are few enough. The gaps with the most members remain.
std::vector<Range> joined_over_small(const std::vector<Range>& ranges,
                                     const std::vector<std::size_t>& gaps) {
  PV2_ASSERT(gaps.size() + 1 == ranges.size(), "a gap lies between two ranges");
  constexpr std::size_t kGapsMax = InterruptedMembers::kRangesMax - 1;
  std::vector<std::size_t> widest = gaps;
  std::nth_element(widest.begin(), widest.begin() + kGapsMax, widest.end(), std::greater<>());
  const std::size_t limit = widest[kGapsMax];  // at most kGapsMax gaps are wider than this
  std::vector<Range> joined{ranges.front()};
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    gaps[i - 1] > limit ? joined.push_back(ranges[i]) : void(joined.back().last = ranges[i].last);
  }
  return joined;
}

}  // namespace

InterruptedMembers::InterruptedMembers(std::vector<Candidate> candidates) {
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  std::vector<std::size_t> gaps;  // before each range but the first: candidates not interrupted
  std::size_t others = 0;
  for (const Candidate& candidate : candidates) {
    if (!candidate.interrupted) {
      ++others;
    } else if (ranges_.empty() || others != 0) {
      if (!ranges_.empty()) gaps.push_back(others);
      ranges_.push_back({candidate.id, candidate.id});
      others = 0;
    } else {
      PV2_ASSERT(ranges_.back().last < candidate.id, "candidates come in order of id, each once");
      ranges_.back().last = candidate.id;
    }
  }
  if (ranges_.size() > kRangesMax) ranges_ = joined_over_small(ranges_, gaps);
  PV2_ASSERT(ranges_.size() <= kRangesMax, "the ranges of a record are bounded");
}

bool InterruptedMembers::contains(ProcedureId id) const noexcept {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), id,
                       [](ProcedureId wanted, const Range& range) { return wanted < range.first; });
  return after != ranges_.begin() && !(std::prev(after)->last < id);
}

bool InterruptedMembers::append(Range range) {
  const bool behind = ranges_.empty() || ranges_.back().last < range.first;
  if (!behind || range.last < range.first || ranges_.size() == kRangesMax) return false;
  ranges_.push_back(range);
  return true;
}

}  // namespace pv2
