// SPDX-License-Identifier: Apache-2.0
//
// An ExtendibleSet holds what a plain set holds, whatever its hashes are like, and no insertion
// reads more than the entries of a bucket.

#include "pv2/base/extendible_set.h"

#include <pv2/base/random.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <memory>
#include <new>
#include <set>
#include <vector>

#include "support/catch.h"

namespace pv2::testing::extendible_set_test {
namespace {

std::size_t hashed = 0;    // how many hashes were asked for
std::size_t compared = 0;  // how many entries were compared with a key

// Keys are found by themselves, and by their text.
struct Text {
  std::uint64_t number;
};
template <std::uint64_t (*kHash)(std::uint64_t)>
struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::uint64_t key) const noexcept {
    ++hashed;
    return kHash(key);
  }
  std::size_t operator()(const Text& text) const noexcept { return (*this)(text.number); }
};
struct Equal {
  using is_transparent = void;
  bool operator()(std::uint64_t one, std::uint64_t other) const noexcept {
    ++compared;
    return one == other;
  }
  bool operator()(const Text& text, std::uint64_t key) const noexcept {
    return (*this)(text.number, key);
  }
  bool operator()(std::uint64_t key, const Text& text) const noexcept {
    return (*this)(text.number, key);
  }
};
// Takes memory as often as `left` says, and then throws.
std::size_t left = SIZE_MAX;
template <class T>
struct FewArrays {
  using value_type = T;
  FewArrays() = default;
  template <class U>
  explicit FewArrays(const FewArrays<U>& /*other*/) noexcept {}
  T* allocate(std::size_t count) {
    if (left == 0) throw std::bad_alloc();
    --left;
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* array, std::size_t count) noexcept {
    std::allocator<T>().deallocate(array, count);
  }
  bool operator==(const FewArrays& /*other*/) const = default;
};

template <std::uint64_t (*kHash)(std::uint64_t)>
using SetBy = ExtendibleSet<boost::unordered_flat_set<std::uint64_t, Hash<kHash>, Equal>>;

std::uint64_t mixed(std::uint64_t key) { return (key ^ key >> 31) * 0x7FB5D329728EA185ULL; }
std::uint64_t itself(std::uint64_t key) { return key; }
std::uint64_t far_apart(std::uint64_t key) { return key << 40; }
std::uint64_t one_of_eight(std::uint64_t key) { return key % 8; }
std::uint64_t even_alike(std::uint64_t key) { return key % 2 == 0 ? 1 : mixed(key); }

template <class Set>
std::set<std::uint64_t> all_of(const Set& set) {
  std::set<std::uint64_t> all;
  set.for_each([&](std::uint64_t key) { CHECK(all.insert(key).second); });
  return all;
}

template <class Set>
void compare_with_a_plain_set(std::uint64_t keys, int moves) {
  Set set;
  std::set<std::uint64_t> plain;
  Random random(7);
  bool same = true;
  for (int i = 0; i < moves; ++i) {
    const std::uint64_t key = random.below(keys);
    // It grows for a while and shrinks for a while.
    const bool adds = random.below(4) != 0 ? (i / (moves / 4)) % 2 == 0 : random.below(2) == 0;
    same = same && (adds ? set.insert(key) == plain.insert(key).second
                         : set.erase(key) == (plain.erase(key) != 0));
    const std::uint64_t looked_for = random.below(keys);
    const std::uint64_t* const found = set.find(Text{looked_for});
    same = same && (found != nullptr ? *found == looked_for && plain.contains(looked_for)
                                     : !plain.contains(looked_for));
    same = same && set.size() == plain.size();
  }
  CHECK(same);
  CHECK(all_of(set) == plain);
  set.clear();
  CHECK(set.size() == 0);
  CHECK(all_of(set).empty());
  CHECK(set.insert(1));
}

}  // namespace

TEST_CASE("an extendible set holds what a plain set holds, whatever its hashes are like") {
  constexpr std::uint64_t kMany = 12 * SetBy<mixed>::kBucketMax;
  compare_with_a_plain_set<SetBy<mixed>>(kMany, 200'000);
  compare_with_a_plain_set<SetBy<itself>>(kMany, 200'000);
  compare_with_a_plain_set<SetBy<far_apart>>(kMany, 200'000);
  compare_with_a_plain_set<SetBy<one_of_eight>>(100, 2'000);
}

TEST_CASE("no insertion into an extendible set reads more than the entries of a bucket") {
  constexpr std::uint64_t kKeys = 60 * SetBy<mixed>::kBucketMax;
  constexpr std::size_t kHashesPerEntry = 3;  // where it goes, and in which bucket
  SetBy<mixed> set;
  std::size_t most = 0;
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    const std::size_t before = hashed;
    REQUIRE(set.insert(key));
    most = std::max(most, hashed - before);
  }
  CHECK(set.size() == kKeys);
  CHECK(most > SetBy<mixed>::kBucketMax);
  CHECK(most <= kHashesPerEntry * SetBy<mixed>::kBucketMax);
}

template <class Set>
void expect_that_look_ups_compare_few() {
  constexpr std::uint64_t kKeys = 40 * Set::kBucketMax;
  Set set;
  for (std::uint64_t key = 1; key <= kKeys; ++key) set.insert(key);
  const std::size_t before = compared;
  std::size_t found = 0;
  for (std::uint64_t key = 1; key <= kKeys; ++key) found += set.find(key) != nullptr ? 1 : 0;
  CHECK(found == kKeys);
  CHECK(compared - before < 2 * kKeys);
}

TEST_CASE("a look-up in an extendible set compares few entries, whatever the hashes are like") {
  expect_that_look_ups_compare_few<SetBy<mixed>>();
  expect_that_look_ups_compare_few<SetBy<itself>>();
  expect_that_look_ups_compare_few<SetBy<far_apart>>();
}

TEST_CASE("an extendible set is as it was when there is no memory to split a bucket") {
  using Set = ExtendibleSet<
      boost::unordered_flat_set<std::uint64_t, Hash<mixed>, Equal, FewArrays<std::uint64_t>>>;
  Set set;
  std::set<std::uint64_t> plain;
  std::size_t refused = 0;
  for (std::uint64_t key = 0; key < 5 * Set::kBucketMax; ++key) {
    bool is_in = false;
    for (std::size_t arrays = 0; !is_in; ++arrays) {  // one array more each time
      left = arrays;
      try {
        is_in = set.insert(key);
      } catch (const std::bad_alloc&) {
        ++refused;
      }
      REQUIRE((set.find(key) != nullptr) == is_in);
      REQUIRE(set.size() == plain.size() + (is_in ? 1 : 0));
    }
    plain.insert(key);
  }
  left = SIZE_MAX;
  CHECK(refused >= 8);
  CHECK(all_of(set) == plain);
}

TEST_CASE("entries with the same hash are in the set although no split tells them apart") {
  constexpr std::uint64_t kAlike = SetBy<even_alike>::kBucketMax + 200;
  SetBy<even_alike> set;
  for (std::uint64_t key = 0; key < kAlike; ++key) REQUIRE(set.insert(2 * key));
  CHECK(set.find(2 * (kAlike - 1)) != nullptr);
  CHECK(set.find(2 * kAlike) == nullptr);
  CHECK_FALSE(set.insert(2));
  // Other buckets, which have many places of the directory now, are split as before.
  constexpr std::uint64_t kOthers = 6 * SetBy<even_alike>::kBucketMax;
  for (std::uint64_t key = 0; key < kOthers; ++key) REQUIRE(set.insert(2 * key + 1));
  std::uint64_t found = 0;
  for (std::uint64_t key = 0; key < kOthers; ++key)
    found += set.find(2 * key + 1) != nullptr ? 1 : 0;
  CHECK(found == kOthers);
  CHECK(set.size() == kAlike + kOthers);
}

}  // namespace pv2::testing::extendible_set_test
