// SPDX-License-Identifier: Apache-2.0
//
// ExtendibleSet: a hash table that grows a bucket at a time. A table that grows as a whole moves
// all of its entries in one insertion. With 860 000 entries whose hashes lie behind pointers, that
// took 58 ms, and whoever needed the mutex that guards the table waited. Here a bucket has a
// bounded number of entries, and one that is full is split into two. A directory with a power of
// two of places says which bucket an entry is in. (Extendible hashing: Fagin and others, ACM TODS
// 4(3), 1979.)
//
//     directory, depth 2     buckets, depth
//         00 ------------->  entries with hashes 00.., 2
//         01 ------------->  entries with hashes 01.., 2
//         10 -----------+->  entries with hashes 1...., 1
//         11 -----------'

#pragma once

#include <pv2/base/block_cache.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace pv2 {

/// `Entries` is a hash table of the kind of boost::unordered_flat_set, with small entries. Its hash
/// and its equality also take the keys by which entries are found (is_transparent). Hashes that are
/// the same in many entries make the set slow, as they do any hash table. The set keeps the memory
/// of its entries until clear() or its end. Not thread-safe.
template <class Entries>
class ExtendibleSet {
 public:
  using Entry = typename Entries::value_type;

  /// A bucket with this many entries is full. The insertion that finds its bucket full splits it. A
  /// flat set of 256 groups has room for this many entries. One more entry would need 512 groups.
  static constexpr std::size_t kBucketMax = 3359;

  ExtendibleSet() {
    buckets_.push_back(std::make_unique<Bucket>());
    directory_.push_back(buckets_.front().get());
  }
  ExtendibleSet(const ExtendibleSet&) = delete;
  ExtendibleSet& operator=(const ExtendibleSet&) = delete;
  ~ExtendibleSet() = default;

  /// False: there is an equal entry, which stays. Throws std::bad_alloc; the set is then as it was.
  bool insert(const Entry& entry) {
    const std::uint64_t hash = spread(entry);
    while (bucket_of(hash).entries.size() >= kBucketMax) {
      if (find(entry) != nullptr) return false;
      if (!split(hash)) break;
    }
    const bool is_new = bucket_of(hash).entries.insert(entry).second;
    if (is_new) ++size_;
    return is_new;
  }
  /// nullptr: there is no such entry. Valid until the next insert(), clear(), or its own erase().
  template <class Key>
  [[nodiscard]] const Entry* find(const Key& key) const {
    const Entries& entries = bucket_of(spread(key)).entries;
    const auto at = entries.find(key);
    return at != entries.end() ? &*at : nullptr;
  }
  /// False: there is no such entry.
  template <class Key>
  bool erase(const Key& key) {
    Entries& entries = bucket_of(spread(key)).entries;
    const auto at = entries.find(key);
    if (at == entries.end()) return false;
    entries.erase(at);
    --size_;
    return true;
  }
  /// Gives the memory of the entries back, too.
  void clear() noexcept {
    buckets_.resize(1);
    buckets_.front()->entries = Entries();
    buckets_.front()->depth = 0;
    directory_.resize(1);
    directory_.front() = buckets_.front().get();
    spare_ = Entries();
    depth_ = 0;
    size_ = 0;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// `look` is called with each entry, and may destroy what the entry points to.
  template <class Look>
  void for_each(Look look) const {
    for (const std::unique_ptr<Bucket>& bucket : buckets_) {
      for (const Entry& entry : bucket->entries) look(entry);
    }
  }

 private:
  // The directory uses at most this many bits of a hash. A bucket whose entries share all of these
  // bits grows as a whole.
  static constexpr unsigned kDepthMax = 16;

  struct Bucket : Recycled {
    Entries entries{};
    unsigned depth = 0;  // how many of the first bits of the hash all entries share
  };

  // The first bits of the result say where in the directory the bucket of a key is. They must not
  // be those by which the table in the bucket places its entries, or all of them would have the
  // same place. So the constant is none by which Boost multiplies a hash.
  template <class Key>
  [[nodiscard]] static std::uint64_t spread(const Key& key) noexcept {
    const std::uint64_t hash = typename Entries::hasher()(key);
    return (hash ^ hash >> 32) * 0xD6E8FEB86659FD93ULL;
  }
  // In two shifts, because a depth of 0 would shift by all bits.
  [[nodiscard]] std::size_t place_of(std::uint64_t hash) const noexcept {
    return static_cast<std::size_t>(hash >> 1 >> (63 - depth_));
  }
  [[nodiscard]] Bucket& bucket_of(std::uint64_t hash) const noexcept {
    return *directory_[place_of(hash)];
  }

  // Splits the bucket of `hash`. False: it is as deep as a bucket may be.
  bool split(std::uint64_t hash) {
    const unsigned depth = bucket_of(hash).depth;
    if (depth == kDepthMax) return false;
    if (depth == depth_) double_directory();
    auto made = std::make_unique<Bucket>();
    made->entries.reserve(kBucketMax);
    spare_.reserve(kBucketMax);
    buckets_.push_back(std::move(made));  // nothing throws from here on
    Bucket& lower = bucket_of(hash);
    Bucket& upper = *buckets_.back();
    lower.depth = upper.depth = depth + 1;
    deal(lower.entries, depth, spare_, upper.entries);
    lower.entries.swap(spare_);
    spare_.clear();
    const std::size_t half = std::size_t{1} << (depth_ - lower.depth);
    const std::size_t middle = (place_of(hash) & ~(2 * half - 1)) + half;
    std::fill_n(directory_.begin() + static_cast<std::ptrdiff_t>(middle), half, &upper);
    return true;
  }

  // Copies each entry to `zeros` or to `ones`, by the bit at `depth` of its hash. Both have room
  // for all entries. The hash of an entry may lie in memory that no cache has. So the loop reads
  // the hashes of a few entries in a row, and the processor waits for all of them at once.
  static void deal(const Entries& entries, unsigned depth, Entries& zeros, Entries& ones) {
    constexpr std::size_t kAtOnce = 32;
    std::array<Entry, kAtOnce> some{};
    std::array<bool, kAtOnce> is_one{};
    for (auto at = entries.begin(); at != entries.end();) {
      std::size_t count = 0;
      for (; count < kAtOnce && at != entries.end(); ++at) some[count++] = *at;
      for (std::size_t i = 0; i < count; ++i)
        is_one[i] = (spread(some[i]) >> (63 - depth) & 1) != 0;
      for (std::size_t i = 0; i < count; ++i) (is_one[i] ? ones : zeros).insert(some[i]);
    }
  }

  void double_directory() {
    std::vector<Bucket*> doubled;
    doubled.reserve(2 * directory_.size());
    for (Bucket* const bucket : directory_) doubled.insert(doubled.end(), 2, bucket);
    directory_ = std::move(doubled);
    ++depth_;
  }

  std::vector<std::unique_ptr<Bucket>> buckets_;
  Entries spare_;  // has no entries, but the memory of the last bucket that was split
  std::vector<Bucket*> directory_;
  unsigned depth_ = 0;
  std::size_t size_ = 0;
};

}  // namespace pv2
