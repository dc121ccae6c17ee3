// SPDX-License-Identifier: Apache-2.0
//
// Two whole clusters: what clients write into one comes to the other, whatever happens to servers,
// masters, regions and the way between them.

#include <pv2/procedures/add_peer.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/disable_peer.h>
#include <pv2/procedures/enable_peer.h>
#include <pv2/procedures/remove_peer.h>

#include "cluster/replication/replication_world.h"

namespace pv2::testing::replication_story_test {
namespace {

using namespace pv2::testing::replication_world;  // NOLINT: of the test
using namespace std::chrono_literals;

}  // namespace

TEST_CASE("what is written into a table comes to the other cluster") {
  TwoClusters world;
  world.add_peer();
  CHECK(world.put("a", "1").ok());
  CHECK(world.put("m", "2").ok());
  CHECK(world.put("z", "3").ok());
  CHECK(world.put("a", "4").ok());
  CHECK(world.remove("m").ok());
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == Rows{{"a", "4"}, {"z", "3"}});
  CHECK(world.rows_of(world.source) == world.rows_of(world.target));
  CHECK(world.source.disorder().empty());
  CHECK(world.target.disorder().empty());
}

TEST_CASE("appends and increments come to the other cluster as what they have made") {
  TwoClusters world;
  world.add_peer();
  CHECK(world.put("a", "1").ok());
  for (int i = 0; i < 3; ++i) {
    CHECK(world.write({.kind = MutationKind::kIncrement, .row = "a", .amount = 5}).ok());
    CHECK(world.write({.kind = MutationKind::kAppend, .row = "b", .value = "x"}).ok());
  }
  CHECK(world.write({.kind = MutationKind::kDeleteRow, .row = "a"}).ok());
  CHECK(world.write({.kind = MutationKind::kIncrement, .row = "a", .amount = 7}).ok());
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == Rows{{"a", "7"}, {"b", "xxx"}});
}

TEST_CASE("nothing is shipped to a disabled peer, and everything when it is enabled again") {
  TwoClusters world;
  world.add_peer();
  REQUIRE(world.source.run(DisablePeer(ports_elsewhere(), kPeer)).status.ok());
  CHECK(world.put("a", "1").ok());
  world.source.run_for(60s);
  CHECK(world.rows_of(world.target).empty());
  CHECK(world.bytes_behind() > 0);
  REQUIRE(world.source.run(EnablePeer(ports_elsewhere(), kPeer)).status.ok());
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == Rows{{"a", "1"}});
  CHECK(world.bytes_behind() == 0);
}

}  // namespace pv2::testing::replication_story_test
