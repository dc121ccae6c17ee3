// SPDX-License-Identifier: Apache-2.0
//
// The lengths of the runs halve from one to the next, so there are at most as many as a length has
// bits, and a key is merged that often.

#include "log/sorted_runs.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pv2 {

bool SortedRuns::sort_some() {
  if (unsorted_.empty()) return false;
  const auto from =
      unsorted_.end() - static_cast<std::ptrdiff_t>(std::min(kSortedAtOnce, unsorted_.size()));
  Run run(from, unsorted_.end());
  unsorted_.erase(from, unsorted_.end());
  std::sort(run.begin(), run.end());
  runs_.push_back(std::move(run));
  while (runs_.size() > 1 && runs_[runs_.size() - 2].size() < 2 * runs_.back().size()) {
    const Run last = std::move(runs_.back());
    runs_.pop_back();
    Run merged;
    merged.reserve(runs_.back().size() + last.size());
    std::merge(runs_.back().begin(), runs_.back().end(), last.begin(), last.end(),
               std::back_inserter(merged));
    runs_.back() = std::move(merged);
  }
  return !unsorted_.empty();
}

void SortedRuns::collect(std::string_view prefix, std::vector<std::string_view>& keys) {
  while (sort_some()) {
  }
  for (const Run& run : runs_) {
    for (auto key = std::lower_bound(run.begin(), run.end(), prefix);
         key != run.end() && key->starts_with(prefix); ++key) {
      keys.push_back(*key);
    }
  }
}

}  // namespace pv2
