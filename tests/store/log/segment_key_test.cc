// SPDX-License-Identifier: Apache-2.0
//
// Two keys of the index are equal exactly if their bytes are, short or long; equal ones have the
// same hash, and nobody can choose others that have it.

#include "log/segment_key.h"

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "pv2/base/random.h"
#include "support/catch.h"

namespace pv2::testing::segment_key_test {
namespace {

TEST_CASE("keys of an index are equal if their bytes are, whatever their lengths") {
  std::vector<std::string> keys{"", "P", "N"};
  for (std::size_t size = 1; size <= 2 * SegmentKey::kShort; ++size) {
    keys.emplace_back(size, '\0');  // as the padding of shorter ones
    keys.emplace_back(size, '\xFF');
    keys.push_back(std::string(size - 1, '\0') + '\x17');
  }
  Random random(7);
  for (int i = 0; i < 100; ++i) {
    std::string& key = keys.emplace_back(1 + random.below(30), ' ');
    for (char& byte : key) byte = static_cast<char>(random.below(2));
  }
  for (const std::string& a : keys) {
    REQUIRE(SegmentKey(a).size() == a.size());
    for (const std::string& b : keys) {
      const std::string other = b;  // elsewhere in memory
      REQUIRE((SegmentKey(a) == SegmentKey(other)) == (a == b));
    }
    const std::string copy = a;
    REQUIRE(SegmentKey::Hash()(SegmentKey(a)) == SegmentKey::Hash()(SegmentKey(copy)));
  }
}

std::string bytes_of(std::uint64_t word) {
  std::string bytes(sizeof word, ' ');
  std::memcpy(bytes.data(), &word, sizeof word);
  return bytes;
}

TEST_CASE("keys of an index that a client has computed to collide have different hashes") {
  // A hash that mixes one word after the other, without a secret: whatever the first word is, there
  // is a second word after which it is where it always is.
  const auto mix = [](std::uint64_t word) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{word ^ 0x9E3779B97F4A7C15U} * 0xD6E8FEB86659FD93U;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  std::set<std::size_t> hashes;
  const SegmentKey::Hash hash;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::string nonce = bytes_of(i << 8 | 'N') + bytes_of(mix(i << 8 | 'N') ^ 12345) + 'x';
    hashes.insert(hash(SegmentKey(nonce)));
    hashes.insert(hash(SegmentKey("H pv2.nonce/12345678" + nonce)));
  }
  CHECK(hashes.size() == 2000);
}

}  // namespace
}  // namespace pv2::testing::segment_key_test
