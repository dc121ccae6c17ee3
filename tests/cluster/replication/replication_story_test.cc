// SPDX-License-Identifier: Apache-2.0
//
// Two whole clusters: what clients write into one comes to the other, whatever happens to servers,
// masters, regions and the way between them.

#include <pv2/procedures/add_peer.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/delete_table.h>
#include <pv2/procedures/disable_peer.h>
#include <pv2/procedures/disable_table.h>
#include <pv2/procedures/enable_peer.h>
#include <pv2/procedures/remove_peer.h>
#include <pv2/procedures/transit_region_state.h>
#include <pv2/procedures/truncate_table.h>
#include <pv2/procedures/update_peer_config.h>

#include <set>

#include "cluster/replication/replication_world.h"
#include "replication/queue_files.h"

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

TEST_CASE("a server dies before it has shipped: another one goes on with its queue") {
  TwoClusters world;
  world.add_peer();
  REQUIRE(world.source.run(DisablePeer(ports_elsewhere(), kPeer)).status.ok());
  const Rows rows = world.put_many(30);
  world.lose_first_server();
  CHECK(world.source.disorder().empty());
  CHECK(world.queues().size() == 3);  // of three owners, on two servers
  // The claimer dies too, and so on: one server is left in the end.
  world.lose_first_server();
  CHECK(world.source.disorder().empty());
  CHECK(world.queues().size() == 3);
  REQUIRE(world.source.run(EnablePeer(ports_elsewhere(), kPeer)).status.ok());
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == rows);
  CHECK(world.queues().size() == 1);
}

TEST_CASE("rows that were written before and after their region moved end in order") {
  TwoClusters world(1);
  world.add_peer();
  REQUIRE(world.source.run(DisablePeer(ports_elsewhere(), kPeer)).status.ok());
  // The same rows are in the logs of all servers, and each server ships on its own.
  for (int round = 0; round < 6; ++round) {
    for (const ServerName& server : world.source.servers()) {
      const auto rows = world.source.answer<Result<std::vector<RegionRow>>>(
          [&](auto done) { world.client->regions_of(kTable, std::move(done)); });
      REQUIRE(rows.ok());
      REQUIRE(world.source
                  .run(TransitRegionState::move(ports_elsewhere(), rows->front().region, server))
                  .status.ok());
      REQUIRE(world.put("a", std::to_string(round) + server.host).ok());
      REQUIRE((round % 2 == 0 ? world.put("b", server.host) : world.remove("b")).ok());
    }
  }
  REQUIRE(world.source.run(EnablePeer(ports_elsewhere(), kPeer)).status.ok());
  world.run_until_shipped();
  CHECK(world.rows_of(world.source) == world.rows_of(world.target));
  CHECK(world.rows_of(world.target) == Rows{{"a", "5rs3"}});
}

TEST_CASE("what is written after a table was truncated or made anew comes to the other cluster") {
  TwoClusters world(1, 1);
  world.add_peer();
  // The target has seen the ten edits of these puts. The new table counts its sequences from the
  // start, so its put has a lower sequence than they have. Its region has a later opening, which
  // is compared first.
  for (int i = 0; i < 10; ++i) REQUIRE(world.put("a", std::to_string(i)).ok());
  world.run_until_shipped();
  REQUIRE(world.source.run(DisableTable(ports_elsewhere(), kTable)).status.ok());
  SECTION("truncated") {
    REQUIRE(world.source.run(TruncateTable(ports_elsewhere(), kTable, TruncateSplits::kPreserve))
                .status.ok());
  }
  SECTION("made anew") {
    REQUIRE(world.source.run(DeleteTable(ports_elsewhere(), kTable)).status.ok());
    REQUIRE(world.source.run(create(kTable, 1)).status.ok());
  }
  CHECK(world.rows_of(world.source).empty());
  REQUIRE(world.put("a", "after").ok());
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == Rows{{"a", "after"}});
}

TEST_CASE("edits do not travel back: two clusters that are peers of each other come to rest") {
  TwoClusters world;
  world.add_peer();
  TwoClusters::add_peer(world.target, world.source);
  REQUIRE(world.put("a", "from the source").ok());
  REQUIRE(world.target.put(*world.target_client, kTable, "b", "from the target").ok());
  world.run_until_shipped();
  world.source.run_until([&] { return TwoClusters::is_shipped(world.target); });
  const Rows both{{"a", "from the source"}, {"b", "from the target"}};
  CHECK(world.rows_of(world.source) == both);
  CHECK(world.rows_of(world.target) == both);
  world.source.run_for(60s);
  std::uint64_t shipped = 0;
  for (const auto* each : {&world.source, &world.target}) {
    for (const auto& queue : TwoClusters::queues_of(*each)) shipped += queue.edits_shipped;
  }
  CHECK(shipped == 2);
}

TEST_CASE("a cluster is not its own peer, whichever path leads to it") {
  TwoClusters world(1, 1);
  ClusterWorld& own = world.source;
  const cluster::ClusterLayout other_path("/another/path");
  const PeerConfig config{other_path.root(), {}};
  // What a link shows there when somebody makes it.
  const auto make_link = [&] {
    REQUIRE(own.files.make_directories(other_path.master()).ok());
    for (const auto& file : {std::pair{own.layout.cluster_id(), other_path.cluster_id()},
                             std::pair{own.layout.master_address(), other_path.master_address()}}) {
      REQUIRE(own.files.write(file.second, *own.files.read(file.first)).ok());
    }
  };

  // The path leads nowhere yet, so nobody can know.
  REQUIRE(own.run(AddPeer(ports_elsewhere(), {kPeer, config})).status.to_string() == "OK");
  make_link();
  for (int i = 0; i < 3; ++i) {
    CHECK(world.write({.kind = MutationKind::kIncrement, .row = "a", .amount = 1}).ok());
  }
  own.run_for(60s);
  CHECK(world.rows_of(own) == Rows{{"a", "3"}});
  int told = 0;
  for (const auto& queue : world.queues()) {
    CHECK(queue.edits_shipped == 0);
    if (queue.bytes_behind == 0) continue;
    ++told;
    CHECK_THAT(queue.problem, ContainsSubstring("is this cluster itself"));
  }
  CHECK(told == 1);

  const std::vector<TableName> tables{kTable};
  const auto updated =
      own.run(UpdatePeerConfig(ports_elsewhere(), kPeer, {config.cluster, tables}));
  CHECK_THAT(updated.status.to_string(), ContainsSubstring("is this cluster itself"));
  REQUIRE(own.run(RemovePeer(ports_elsewhere(), kPeer)).status.ok());
  for (const std::string& root : {config.cluster, own.layout.root(), own.layout.root() + "/"}) {
    CAPTURE(root);
    const auto added = own.run(AddPeer(ports_elsewhere(), {kPeer, {root, {}}}));
    CHECK_THAT(added.status.to_string(), ContainsSubstring("is this cluster itself"));
  }
}

TEST_CASE("a link to a peer that is turned to the cluster itself later: nothing is shipped there") {
  TwoClusters world(1, 1);
  ClusterWorld& own = world.source;
  const cluster::ClusterLayout link("/another/path");
  const auto turn_to = [&](const ClusterWorld& to) {
    REQUIRE(own.files.make_directories(link.master()).ok());
    for (const auto& file : {std::pair{to.layout.cluster_id(), link.cluster_id()},
                             std::pair{to.layout.master_address(), link.master_address()}}) {
      REQUIRE(own.files.write(file.second, *own.files.read(file.first)).ok());
    }
  };
  turn_to(world.target);
  const auto added = own.run(AddPeer(ports_elsewhere(), {kPeer, {link.root(), {}}}));
  REQUIRE(added.status.to_string() == "OK");
  REQUIRE(world.put("a", "0").ok());
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == Rows{{"a", "0"}});

  turn_to(own);
  for (const ServerName& server : world.target.servers()) world.target.kill_server(server);
  world.target.kill_master();
  // While edits of these are shipped, later ones would be undone by them.
  for (int i = 0; i < 20; ++i) {
    CHECK(world.write({.kind = MutationKind::kIncrement, .row = "n", .amount = 1}).ok());
    own.run_for(70ms);
  }
  own.run_for(60s);
  CHECK(world.rows_of(own) == Rows{{"a", "0"}, {"n", "20"}});
  int told = 0;
  for (const auto& queue : world.queues()) {
    CHECK(queue.edits_shipped <= 1);
    told += queue.problem.find("nothing is shipped there") != std::string::npos ? 1 : 0;
  }
  CHECK(told == 1);
}

TEST_CASE("a server refuses an edit that has come through its cluster") {
  TwoClusters world(1, 1);
  REQUIRE(world.put("a", "1").ok());
  const std::string own = *world.source.files.read(world.source.layout.cluster_id());
  const auto ship = [&](std::vector<std::string> origins) {
    const Mutation edit{.kind = MutationKind::kReplicatedPut,
                        .row = "a",
                        .family = "f",
                        .qualifier = "q",
                        .value = "2",
                        .version = {1, 1}};
    return world.source.answer<cluster::WriteOutcome>([&](auto done) {
      world.client->write(kTable, {edit}, {.origins = std::move(origins)}, std::move(done));
    });
  };
  const auto refused = ship({own, "another one"});
  CHECK(refused.status.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(refused.status.to_string(), ContainsSubstring("come through this cluster before"));
  CHECK(world.rows_of(world.source) == Rows{{"a", "1"}});
  CHECK(ship({"another one"}).ok());
  CHECK(world.rows_of(world.source) == Rows{{"a", "2"}});
}

TEST_CASE("a chain of three clusters: what the first one writes comes to the last one") {
  TwoClusters world;
  ClusterWorld last(world.source, "/last");
  TwoClusters::begin(last, 1);
  world.add_peer();
  TwoClusters::add_peer(world.target, last);
  TwoClusters::add_peer(last, world.source);  // and it ends there, though it is a ring
  const Rows rows = world.put_many(10);
  world.run_until_shipped();
  for (const auto* each : {&world.target, &last}) {
    world.source.run_until([&] { return TwoClusters::is_shipped(*each); });
  }
  const auto client = last.connect();
  for (const auto& [row, value] : rows) CHECK(last.get(*client, kTable, row) == value);
  for (const auto& queue : TwoClusters::queues_of(last)) CHECK(queue.edits_shipped == 0);
}

TEST_CASE("only the tables of the peer are shipped, and a table that is missing there stops it") {
  TwoClusters world;
  const TableName other{"default", "other"};
  REQUIRE(world.source.run(create(other, 1)).status.ok());
  TwoClusters::add_peer(world.source, world.target, {kTable});
  REQUIRE(world.source.put(*world.client, other, "a", "1").ok());
  REQUIRE(world.put("a", "2").ok());
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == Rows{{"a", "2"}});

  const PeerConfig all{world.target.layout.root(), {}};
  REQUIRE(world.source.run(UpdatePeerConfig(ports_elsewhere(), kPeer, all)).status.ok());
  REQUIRE(world.source.put(*world.client, other, "b", "3").ok());
  world.source.run_for(60s);
  std::string problems;
  for (const auto& queue : world.queues()) problems += queue.problem;
  CHECK(problems.find("table default:other") != std::string::npos);
  REQUIRE(world.target.run(create(other, 2)).status.ok());
  world.run_until_shipped();
  CHECK(world.rows_of(world.target, other) == Rows{{"b", "3"}});
  for (const auto& queue : world.queues()) CHECK(queue.problem.empty());
}

TEST_CASE("a peer that is removed takes its queues with it, also those that were claimed") {
  TwoClusters world;
  world.add_peer();
  REQUIRE(world.source.run(DisablePeer(ports_elsewhere(), kPeer)).status.ok());
  world.put_many(10);
  world.lose_first_server();
  REQUIRE(world.source.run(RemovePeer(ports_elsewhere(), kPeer)).status.ok());
  CHECK(world.queues().empty());
  CHECK(world.source.disorder().empty());
  world.source.run_for(30s);
  CHECK(world.rows_of(world.target).empty());
  // A new peer of that name begins anew.
  world.add_peer();
  REQUIRE(world.put("new", "1").ok());
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == Rows{{"new", "1"}});
}

TEST_CASE("a queue of a peer that does not exist is found") {
  TwoClusters world(1, 1);
  world.add_peer();
  const cluster::QueueFiles queues(world.source.files, world.source.layout);
  const ServerName server = world.source.servers().front();
  CHECK(world.source.disorder().empty());
  REQUIRE(queues.make("old", server, {}).ok());
  CHECK(world.source.disorder() ==
        std::vector{"server " + to_string(server) +
                    " keeps a queue for peer old, which does not exist"});
}

TEST_CASE("a peer that cannot be read stops nothing else, and loses nothing when it is mended") {
  TwoClusters world;
  ClusterWorld& source = world.source;
  world.add_peer();
  REQUIRE(source.run(AddPeer(ports_elsewhere(), {"q", {"/nowhere", {}}})).status.ok());
  REQUIRE(source.run(DisablePeer(ports_elsewhere(), kPeer)).status.ok());
  Rows rows = world.put_many(20);
  const std::string config = source.layout.peer(kPeer) + "/config";
  const std::string good = *source.files.read(config);
  REQUIRE(source.files.write(config, "no frame").ok());
  const auto disorder = [&] {
    const auto found = source.disorder();
    REQUIRE(found.size() == 1);
    return found.front();
  };
  CHECK_THAT(disorder(), ContainsSubstring("peer p cannot be read"));

  // The dead server is retired, and its queues are claimed. Its heir has never known the peer.
  const auto servers = source.servers();
  for (const ServerName& server : servers) source.kill_server(server);
  for (const ServerName& server : servers) source.start_server(server.host);
  source.run_for(15s);
  source.run_until_quiet();
  CHECK_THAT(disorder(), ContainsSubstring("peer p cannot be read"));
  std::set<std::string> owners;
  const auto all = cluster::QueueFiles(source.files, source.layout).all();
  REQUIRE(all.ok());
  for (const auto& queue : *all) {
    CHECK(std::ranges::find(servers, queue.server) == servers.end());
    owners.insert(queue.peer + " " + to_string(queue.owner));
  }
  CHECK(owners.size() == 2 * 2 * servers.size());
  // Healthy peers are changed.
  CHECK(source.run(UpdatePeerConfig(ports_elsewhere(), "q", {"/nowhere", {kTable}})).status.ok());
  CHECK(source.run(EnablePeer(ports_elsewhere(), kPeer)).status.code() == StatusCode::kCorruption);
  REQUIRE(world.put("a", "while it could not be read").ok());
  rows["a"] = "while it could not be read";

  REQUIRE(source.files.write(config, good).ok());
  source.run_for(15s);
  REQUIRE(source.run(EnablePeer(ports_elsewhere(), kPeer)).status.to_string() == "OK");
  REQUIRE(source.run(RemovePeer(ports_elsewhere(), "q")).status.to_string() == "OK");
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == rows);
  CHECK(source.disorder().empty());
}

TEST_CASE("a queue of a removed peer that a dead server has begun too late is removed") {
  TwoClusters world;
  world.add_peer();
  const ServerName dead = world.lose_first_server();
  REQUIRE(world.source.run(RemovePeer(ports_elsewhere(), kPeer)).status.ok());
  const cluster::QueueFiles queues(world.source.files, world.source.layout);
  REQUIRE(queues.make(kPeer, dead, {1, 0}).ok());
  world.source.run_for(std::chrono::minutes(2));
  CHECK(queues.directories()->empty());
  world.add_peer();
}

TEST_CASE("the other cluster is down for a while") {
  TwoClusters world;
  world.add_peer();
  const auto servers = world.target.servers();
  world.target.kill_master();
  for (const ServerName& server : servers) world.target.kill_server(server);
  const Rows rows = world.put_many(20);
  world.source.run_for(std::chrono::minutes(5));
  CHECK(world.bytes_behind() > 0);
  world.target.start_master();
  for (const ServerName& server : servers) world.target.start_server(server.host);
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == rows);
}

TEST_CASE("a server that hears no master ships nothing when its lease is over, and goes on later") {
  TwoClusters world(1, 1);
  world.add_peer();
  REQUIRE(world.put("a", "1").ok());
  world.run_until_shipped();
  world.source.kill_master();
  world.source.run_for(std::chrono::seconds(15));
  REQUIRE(world.put("a", "2").ok());
  world.source.run_for(std::chrono::seconds(10));
  CHECK(world.rows_of(world.target) == Rows{{"a", "1"}});
  std::string problems;
  for (const auto& queue : world.queues()) problems += queue.problem;
  CHECK_THAT(problems, ContainsSubstring("no master was heard for the length of the lease"));
  world.source.start_master();
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == Rows{{"a", "2"}});
}

TEST_CASE("a peer is added while a new master has not heard of its servers yet") {
  TwoClusters world;
  const ProcedureId id = world.source.submit(
      AddPeer(ports_elsewhere(), {kPeer, PeerConfig{world.target.layout.root(), {}}}));
  world.source.kill_master();
  world.source.start_master();
  REQUIRE(world.source.result_of(id).status.ok());
  // All servers know it when it is added.
  for (const ServerName& server : world.source.servers()) {
    CHECK(world.source.status_of(server).peers.size() == 1);
  }
  const Rows rows = world.put_many(10);
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == rows);
}

TEST_CASE("a server that starts while there is a peer ships its first write") {
  TwoClusters world;
  world.add_peer();
  const Rows rows = world.put_many(10);
  const auto old = world.source.servers();
  for (const ServerName& server : old) world.source.kill_server(server);
  for (const ServerName& server : old) world.source.start_server(server.host);
  REQUIRE(world.put("a", "new").ok());
  world.run_until_shipped();
  Rows all = rows;
  all["a"] = "new";
  CHECK(world.rows_of(world.target) == all);
}

TEST_CASE("old logs go when they are shipped, and not before") {
  TwoClusters world(3, 2, [](ClusterWorld& each) {
    each.adjust_server = [](cluster::RegionServerOptions& options) {
      options.log_bytes_max = 1024;
      options.logs_max = 1;
    };
  });
  world.add_peer();
  REQUIRE(world.source.run(DisablePeer(ports_elsewhere(), kPeer)).status.ok());
  const Rows rows = world.put_many(200);
  world.source.kill_server(world.source.servers()[0]);
  world.source.run_for(std::chrono::minutes(30));
  const auto old_logs = [&] {
    return world.source.files.list(world.source.layout.old_wals())->size();
  };
  CHECK(old_logs() > 10);
  REQUIRE(world.source.run(EnablePeer(ports_elsewhere(), kPeer)).status.ok());
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == rows);
  world.source.run_for(std::chrono::minutes(15));
  CHECK(old_logs() == 0);
  CHECK(world.rows_of(world.source) == rows);
}

TEST_CASE("a queue that a dead server has begun too late is claimed all the same") {
  TwoClusters world;
  world.add_peer();
  const ServerName dead = world.lose_first_server();
  const cluster::QueueFiles queues(world.source.files, world.source.layout);
  REQUIRE(queues.make(kPeer, dead, {1, 0}).ok());
  CHECK_FALSE(world.source.disorder().empty());
  world.source.run_for(std::chrono::minutes(2));
  CHECK(world.source.disorder() == std::vector<std::string>());
  world.run_until_shipped();
}

}  // namespace pv2::testing::replication_story_test
