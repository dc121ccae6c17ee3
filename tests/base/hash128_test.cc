// SPDX-License-Identifier: Apache-2.0
//
// The hash against published values, and against its own definition of what differs.

#include <pv2/base/hash128.h>

#include <set>
#include <string>
#include <utility>

#include "support/catch.h"

namespace pv2::testing::hash128_test {
namespace {

TEST_CASE("hash128 gives the published values of MurmurHash3") {
  CHECK(hash128("") == Hash128{0, 0});
  CHECK(hash128("hello") == Hash128{0xcbd8a7b341bd9b02, 0x5b1e906a48ae1d19});
  CHECK(hash128("hello, world") == Hash128{0x342fac623a5ebc8e, 0x4cdcbc079642414d});
  CHECK(hash128("The quick brown fox jumps over the lazy dog.") ==
        Hash128{0xcd99481f9ee902c9, 0x695da1a38987b6e7});
}

TEST_CASE("hash128 tells apart texts that differ in one bit, one zero or their length") {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::size_t texts = 0;
  const auto add = [&](const std::string& text) {
    const Hash128 hash = hash128(text);
    seen.insert({hash.first, hash.second});
    ++texts;
  };
  for (std::size_t size = 0; size <= 64; ++size) {
    std::string text(size, '\0');
    add(text);
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      text[bit / 8] = static_cast<char>(1U << (bit % 8));
      add(text);
      text[bit / 8] = '\0';
    }
  }

  CHECK(seen.size() == texts);
}

}  // namespace
}  // namespace pv2::testing::hash128_test
