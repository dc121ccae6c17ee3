// SPDX-License-Identifier: Apache-2.0
//
// Two keys of the index are equal exactly if their bytes are, short or long; equal ones have the
// same hash.

#include "log/segment_key.h"

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

}  // namespace
}  // namespace pv2::testing::segment_key_test
