// SPDX-License-Identifier: Apache-2.0
//
// The table of a server's regions at the end of the server.

#include "server/region_table.h"

#include <memory>

#include "cluster/storage_fixture.h"

namespace pv2::testing::region_table_test {
namespace {

using cluster::HostedRegion;
using cluster::RegionTable;
using cluster::WriteResult;

}  // namespace

// Calls that use a region keep it, and it keeps them until they are answered.
TEST_CASE("a server that is destroyed while regions wait for a log leaves none of them behind") {
  Disk disk;
  StorageServer server(disk, 1);
  disk.make_table({whole_table()});
  REQUIRE(server.start().ok());
  REQUIRE(server.open(whole_table(), 1).ok());
  auto table = std::make_unique<RegionTable>();
  auto entry = std::make_shared<HostedRegion>(whole_table(), 1);
  const std::weak_ptr<HostedRegion> gone = entry;
  entry->region = server.regions.at(whole_table().id);
  table->add(entry);
  entry->region->write({.mutations = {put("a", "1")}, .now = server.now}, *server.log,
                       [](const Result<WriteResult>&) {});
  entry->region->when_visible([entry] { FAIL("called"); });
  entry->region->flush([entry](const Result<std::uint64_t>&) { FAIL("called"); });
  entry->region->close([entry](const Result<std::uint64_t>&) { FAIL("called"); });
  server.work.clear();
  server.regions.clear();
  entry.reset();

  table.reset();

  CHECK(gone.expired());
}

}  // namespace pv2::testing::region_table_test
