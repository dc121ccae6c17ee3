// SPDX-License-Identifier: Apache-2.0
//
// SortedRuns: keys that are added in any order and sometimes visited in order. Nothing is sorted
// until somebody visits; then what was added since becomes a run of its own, and runs of a similar
// length are merged. So a key is sorted a few times in its life, and a visit searches a few runs.

#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace pv2 {

/// Views of keys, whose bytes the caller keeps. Owned by one thread, or guarded by its owner.
class SortedRuns {
 public:
  void add(std::string_view key) { unsorted_.push_back(key); }

  /// Sorts a part of what is not sorted yet. Returns whether more is left.
  bool sort_some();
  /// Adds the keys that begin with `prefix` to `keys`, in no order; one that was added twice may
  /// be there twice.
  void collect(std::string_view prefix, std::vector<std::string_view>& keys);

 private:
  using Run = std::vector<std::string_view>;
  // What is sorted at once, in less than a millisecond; a merge of runs comes on top.
  static constexpr std::size_t kSortedAtOnce = 4'096;

  Run unsorted_;
  std::vector<Run> runs_;  // each at least twice as long as the next one
};

}  // namespace pv2
