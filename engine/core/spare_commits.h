// SPDX-License-Identifier: Apache-2.0
//
// SpareCommits: requests that came back from the store, kept to be filled again. Their buffers keep
// their memory.

#pragma once

#include <pv2/base/assert.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace pv2 {

/// Guarded by its owner.
template <class Commit>
class SpareCommits {
 public:
  std::unique_ptr<Commit> take() {
    if (spare_.empty()) return std::make_unique<Commit>();
    auto commit = std::move(spare_.back());
    spare_.pop_back();
    return commit;
  }
  void give_back(std::unique_ptr<Commit> commit) {
    PV2_ASSERT(commit != nullptr, "a request that is given back was taken");
    if (spare_.size() >= kSpareMax || !is_small(*commit)) return;
    commit->reset();
    spare_.push_back(std::move(commit));
  }

  /// Whether `commit` is kept to be filled again: a batch that grew beyond a page is not.
  [[nodiscard]] static bool is_small(const Commit& commit) noexcept {
    return commit.batch.bytes() <= kBytesMax;
  }

 private:
  static constexpr std::size_t kSpareMax = 4096;  // usually no more are on the way at once
  static constexpr std::size_t kBytesMax = 4096;
  std::vector<std::unique_ptr<Commit>> spare_;
};

}  // namespace pv2
