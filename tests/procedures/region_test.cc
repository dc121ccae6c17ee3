// SPDX-License-Identifier: Apache-2.0
//
// How a key space is divided, and that each region has an id of its own.

#include <pv2/procedures/region.h>

#include <set>
#include <string>

#include "support/catch.h"

namespace pv2::testing::region_test {

TEST_CASE("tables with similar names that procedures with similar ids make share no region id") {
  std::set<std::string> ids;
  std::size_t regions = 0;
  for (char name_space = 'a'; name_space <= 'z'; ++name_space) {
    for (char table = 'a'; table <= 'd'; ++table) {
      for (std::uint64_t procedure = 1; procedure <= 64; ++procedure) {
        const TableName name{std::string(1, name_space), std::string(1, table)};
        for (const RegionInfo& region :
             regions_of(name, {"1", "12", std::string(1, '\0')}, procedure)) {
          ids.insert(region.id);
          ++regions;
        }
      }
    }
  }

  CHECK(ids.size() == regions);
}

TEST_CASE("the same arguments give the same regions, whatever the order of the split keys") {
  const TableName table{"default", "t"};

  const std::vector<RegionInfo> regions = regions_of(table, {"b", "a"}, 7);

  CHECK(regions == regions_of(table, {"a", "b"}, 7));
  REQUIRE(regions.size() == 3);
  CHECK(regions[0].start_key.empty());
  CHECK(regions[0].end_key == "a");
  CHECK(regions[1].end_key == "b");
  CHECK(regions[2].end_key.empty());
}

}  // namespace pv2::testing::region_test
