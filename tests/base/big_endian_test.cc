// SPDX-License-Identifier: Apache-2.0
//
// Numbers in the keys of rows.

#include "pv2/base/big_endian.h"

#include <string>

#include "support/catch.h"

namespace pv2::testing::big_endian_test {

TEST_CASE("keys sort as their numbers do, and give them back") {
  std::string before;
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{255},
                                     std::uint64_t{256}, std::uint64_t{1} << 63, UINT64_MAX}) {
    std::string key;
    append_big_endian(key, number);
    CHECK(key.size() == kBigEndianBytes);
    CHECK(read_big_endian(key + "x") == number);
    CHECK((number == 0 || before < key));
    before = key;
  }
  CHECK(before == std::string(8, '\xff'));
}

}  // namespace pv2::testing::big_endian_test
