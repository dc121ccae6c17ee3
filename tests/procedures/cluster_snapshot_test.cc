// SPDX-License-Identifier: Apache-2.0
//
// The checker of clusters is itself checked: a good cluster is found good, and each thing that can
// be wrong is found. Otherwise every test that relies on it would prove nothing.

#include <pv2/procedures/cluster_snapshot.h>

#include <functional>
#include <string>

#include "support/catch.h"

namespace pv2::testing::cluster_snapshot_test {
namespace {

const ServerName kA{"a", 1};
const ServerName kB{"b", 2};

ClusterSnapshot good() {
  const TableDescriptor t{{"default", "t"}, {"f"}};
  const RegionInfo first{t.name, "01", "", "m"};
  const RegionInfo second{t.name, "02", "m", ""};
  ClusterSnapshot world;
  world.namespaces = {{"default"}};
  world.namespace_directories = {"default"};
  world.tables = {{t, TableState::kEnabled}};
  world.regions = {{first, RegionState::kOpen, kA, 1}, {second, RegionState::kOpen, kB, 3}};
  world.directories = {{t, {"01", "02"}}};
  world.cached = {t};
  world.open = {{kA, {{"01", 1}}}, {kB, {{"02", 3}}}};
  const PeerRow peer{"p", {"/other", {}}, true};
  world.peers = {{"p", peer}};
  world.peer_views = {{kA, world.peers}, {kB, world.peers}};
  world.queues = {{"p", kA}};
  world.effects = {{"open 01", 1}};
  return world;
}

}  // namespace

TEST_CASE("no disorder is found in a cluster in order") { CHECK(find_disorder(good()).empty()); }

TEST_CASE("a disabled table with closed regions is in order, and so is a region that was split") {
  ClusterSnapshot world = good();
  world.tables[0].state = TableState::kDisabled;
  world.open = {{kA, {}}, {kB, {}}};
  for (RegionRow& row : world.regions) row.state = RegionState::kClosed;
  const RegionInfo parent{world.regions[0].region.table, "00", "", ""};
  world.regions.push_back({parent, RegionState::kSplit, kA, 1});
  world.directories[0].regions = {"00", "01", "02"};

  CHECK(find_disorder(world).empty());
}

TEST_CASE("of a peer that cannot be read a server may know what it has read before") {
  ClusterSnapshot world = good();
  world.peers.clear();
  world.unreadable_peers = {{"p", "torn"}};
  CHECK(find_disorder(world) == std::vector<std::string>{"peer p cannot be read: torn"});
  world.peer_views[kA].clear();
  CHECK(find_disorder(world).size() == 1);
  world.queues.insert({"p", {"c", 3}});
  CHECK(find_disorder(world).size() == 2);
}

TEST_CASE("each kind of disorder is found and named") {
  struct Damage {
    std::function<void(ClusterSnapshot&)> inflict;
    std::string finding;
  };
  const std::vector<Damage> damages{
      {[](auto& w) { w.tables[0].state = TableState::kEnabling; }, "table default:t is ENABLING"},
      {[](auto& w) { w.directories.clear(); }, "has no directory"},
      {[](auto& w) { w.directories[0].regions.pop_back(); },
       "directory of table default:t holds 1"},
      {[](auto& w) { w.directories[0].descriptor.families = {"g"}; }, "another descriptor"},
      {[](auto& w) { w.tables.clear(); }, "a directory but no row"},
      {[](auto& w) { w.tables.clear(); }, "region 01 belongs to no table"},
      {[](auto& w) { w.cached.clear(); }, "does not have table default:t as it is"},
      {[](auto& w) { w.regions[1].region.start_key = "n"; }, "hole or an overlap before region 02"},
      {[](auto& w) { w.regions[1].region.end_key = "z"; }, "does not cover the end"},
      {[](auto& w) { w.regions[0].state = RegionState::kOpening; },
       "region 01 of table default:t, which is ENABLED, is OPENING"},
      {[](auto& w) { w.open[kA].clear(); }, "recorded on a,1, which does not have it"},
      {[](auto& w) { w.open.erase(kA); }, "recorded on a,1, which does not live"},
      {[](auto& w) { w.open[kA]["01"] = 2; }, "has open sequence 1 in the catalogue and 2"},
      {[](auto& w) { w.open[kB]["01"] = 1; }, "server b,2 has region 01 open"},
      {[](auto& w) {
         w.servers = {{kA, ServerState::kCrashed}};
       },
       "was not retired"},
      {[](auto& w) {
         w.servers = {{kA, ServerState::kRetired}};
       },
       "still recorded on dead server"},
      {[](auto& w) {
         w.servers = {{kA, ServerState::kRetired}};
       },
       "although it was declared dead"},
      {[](auto& w) {
         w.servers = {{kB, ServerState::kRecovered}};
       },
       "is RECOVERED and was not retired"},
      {[](auto& w) { w.tables[0].state = TableState::kDisabled; },
       "region 01 of table default:t, which is DISABLED, is OPEN"},
      {[](auto& w) { w.namespaces.clear(); }, "in a namespace that does not exist"},
      {[](auto& w) { w.namespaces.clear(); }, "a directory but no row of namespace default"},
      {[](auto& w) { w.namespace_directories.clear(); }, "namespace default has no directory"},
      {[](auto& w) {
         w.cached.push_back({{"default", "gone"}, {"f"}});
       },
       "the descriptor cache has table default:gone, which does not exist"},
      {[](auto& w) { w.peer_views[kA].clear(); }, "server a,1 knows other peers"},
      {[](auto& w) { w.peer_views[kB]["p"].enabled = false; }, "server b,2 knows other peers"},
      {[](auto& w) {
         w.queues.insert({"old", kA});
       },
       "for peer old, which does not exist"},
      {[](auto& w) {
         w.queues.insert({"p", {"c", 3}});
       },
       "of dead server c,3 for peer p"},
      {[](auto& w) { w.effects["open 01"] = 2; }, "effect open 01 took place 2 times"},
  };
  for (const Damage& damage : damages) {
    ClusterSnapshot world = good();
    damage.inflict(world);
    std::string all;
    for (const std::string& finding : find_disorder(world)) all += finding + '\n';
    CHECK_THAT(all, ContainsSubstring(damage.finding));
  }
}

}  // namespace pv2::testing::cluster_snapshot_test
