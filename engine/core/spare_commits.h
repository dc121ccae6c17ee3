// SPDX-License-Identifier: Apache-2.0
//
// SpareCommits: requests that came back from the store, kept to be filled again. Their buffers keep
// their memory. A worker gets those that it has given back itself, if there are any: they are in
// the cache of its processor, where those of another worker would have to be fetched from the cache
// of another one, line by line.

#pragma once

#include <pv2/base/assert.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace pv2 {

/// Guarded by its owner.
template <class Commit>
class SpareCommits {
 public:
  /// One pile for each seat (EngineThread): `workers` and one for all other threads.
  explicit SpareCommits(std::size_t workers) : piles_(workers + 1) {}

  /// For a thread that has this seat.
  std::unique_ptr<Commit> take(std::size_t seat) {
    if (kept_ == 0) return std::make_unique<Commit>();
    Pile* pile = &piles_[seat];
    if (pile->empty()) pile = &piles_[last_given_];
    if (pile->empty()) pile = &fullest();
    auto commit = std::move(pile->back());
    pile->pop_back();
    --kept_;
    return commit;
  }
  void give_back(std::unique_ptr<Commit> commit, std::size_t seat) {
    PV2_ASSERT(commit != nullptr, "a request that is given back was taken");
    if (kept_ >= kSpareMax || !is_small(*commit)) return;
    commit->reset();
    piles_[seat].push_back(std::move(commit));
    last_given_ = seat;
    ++kept_;
  }

  /// How many are kept.
  [[nodiscard]] std::size_t kept() const noexcept { return kept_; }

  /// Whether `commit` is kept to be filled again: a batch that grew beyond a page is not.
  [[nodiscard]] static bool is_small(const Commit& commit) noexcept {
    return commit.batch.bytes() <= kBytesMax;
  }

 private:
  using Pile = std::vector<std::unique_ptr<Commit>>;
  static constexpr std::size_t kSpareMax = 4096;  // usually no more are on the way at once
  static constexpr std::size_t kBytesMax = 4096;

  Pile& fullest() {
    return *std::max_element(piles_.begin(), piles_.end(),
                             [](const Pile& a, const Pile& b) { return a.size() < b.size(); });
  }

  std::vector<Pile> piles_;
  std::size_t kept_ = 0;  // in all piles
  std::size_t last_given_ = 0;
};

}  // namespace pv2
