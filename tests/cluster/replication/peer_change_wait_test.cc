// SPDX-License-Identifier: Apache-2.0
//
// A change of a peer ends only when nothing is under way any more that the peer, as it is stored
// now, does not allow: no edits are on their way to a peer that was removed or disabled, and no
// queue of a peer is being claimed while the peer is removed.

#include <pv2/engine/inspection.h>
#include <pv2/procedures/claim_queues.h>
#include <pv2/procedures/disable_peer.h>
#include <pv2/procedures/remove_peer.h>
#include <pv2/procedures/update_peer_config.h>

#include <algorithm>
#include <functional>

#include "cluster/replication/replication_world.h"
#include "replication/queue_files.h"
#include "storage/log_directories.h"
#include "storage/peer_files.h"

namespace pv2::testing::peer_change_wait_test {
namespace {

using namespace pv2::testing::replication_world;  // NOLINT: of the test
using namespace std::chrono_literals;

/// Edits are on their way to the other cluster, whose servers have stopped.
struct EditsOnTheirWay {
  // Nobody is taken for dead meanwhile.
  TwoClusters world{1, 1, [](ClusterWorld& each) { each.lease = 60s; }};
  ClusterWorld& source = world.source;
  ClusterWorld& target = world.target;
  const Rows edits{{"a", "1"}, {"b", "2"}};

  EditsOnTheirWay() {
    world.add_peer();
    REQUIRE(world.put("a", "0").ok());
    world.run_until_shipped();  // so the servers know where the region is there
    for (const ServerName& server : target.servers()) target.stop_server(server);
    for (const auto& [row, value] : edits) REQUIRE(world.put(row, value).ok());
    source.run_for(1s);
    REQUIRE(world.bytes_behind() > 0);
  }
  void go_on() {
    for (const ServerName& server : target.servers()) target.resume_server(server);
  }
  [[nodiscard]] bool is_stored() const {
    return cluster::PeerFiles(source.files, source.layout).read(kPeer)->has_value();
  }
  [[nodiscard]] bool has_ended(ProcedureId id) const {
    const auto live = source.master().executor().inspect().list();
    return std::ranges::find(live, id, &ProcedureInfo::id) == live.end();
  }
  /// The change waits for the edits, and when it has ended they are there, and no more come.
  void check_waits(ProcedureId change) {
    source.run_for(5s);
    CHECK_FALSE(has_ended(change));
    go_on();
    REQUIRE(source.result_of(change).status.to_string() == "OK");
    CHECK(world.rows_of(target) == edits);
    REQUIRE(world.put("c", "3").ok());
    source.run_for(30s);
    CHECK(world.rows_of(target) == edits);
    CHECK(source.disorder().empty());
  }
};

/// Lets the processes of the world do single things, in an order of its own, until `done`.
void step_until(ClusterWorld& world, const std::function<bool()>& done) {
  Random random(1);
  for (int i = 0; i < 1'000'000 && !done(); ++i) {
    if (i % 100 == 0) world.transport->run_for(10ms);
    world.turn(random);
  }
  REQUIRE(done());
}

}  // namespace

TEST_CASE("a peer is removed only when no edits are on their way to it any more") {
  EditsOnTheirWay story;
  story.check_waits(story.source.submit(RemovePeer(ports_elsewhere(), kPeer)));
}

TEST_CASE("a peer is disabled only when no edits are on their way to it any more") {
  EditsOnTheirWay story;
  story.check_waits(story.source.submit(DisablePeer(ports_elsewhere(), kPeer)));
}

TEST_CASE(
    "a table is taken out of a peer's configuration only when none of its edits are on their way") {
  EditsOnTheirWay story;
  const PeerConfig other{story.target.layout.root(), {{"default", "other"}}};
  const UpdatePeerConfig change(ports_elsewhere(), kPeer, other);
  SECTION("the servers are told") { story.check_waits(story.source.submit(change)); }
  SECTION("the servers notice it by themselves before they are told") {
    const cluster::PeerFiles peers(story.source.files, story.source.layout);
    PeerRow row = **peers.read(kPeer);
    row.config = other;
    REQUIRE(peers.write(row).ok());
    story.source.run_for(6s);
    story.check_waits(story.source.submit(change));
  }
}

TEST_CASE("a server that has noticed a removed peer by itself waits for what is on its way too") {
  EditsOnTheirWay story;
  Result<Submitted> removal = Status(StatusCode::kUnavailable, "not yet");
  std::string arguments;
  RemovePeer procedure(ports_elsewhere(), kPeer);
  encode_fields(procedure, FieldSelection::kArguments, arguments);
  story.source.master().executor().async().submit_encoded(
      RemovePeer::kType, arguments, {},
      [&](const Result<Submitted>& accepted) { removal = accepted; });
  // Between the step that removes the peer and the one that tells the servers.
  step_until(story.source, [&] { return removal.ok() && !story.is_stored(); });
  story.source.pause_master();
  story.source.run_for(6s);
  CHECK(story.world.queues().empty());
  story.source.resume_masters();
  story.check_waits(removal->id);
}

namespace {

/// How many of the stories in which a server stops while it ships end with an edit that comes late.
struct LateEdits {
  int stories = 0;
  int late = 0;
};

/// Tells the story for every step at which the server can stop. `takes_for_dead` is what happens
/// until it goes on.
LateEdits tell_of_stops(
    const std::function<void(ClusterWorld&, const ServerName&)>& takes_for_dead) {
  LateEdits found;
  for (int steps = 0;; ++steps) {
    INFO("the server stops after " << steps << " steps");
    // The servers of the other cluster are not taken for dead.
    TwoClusters world{1, 1, [](ClusterWorld& each) {
                        if (each.layout.root() == "/other") each.lease = 10min;
                      }};
    ClusterWorld& source = world.source;
    world.add_peer();
    REQUIRE(world.put("a", "0").ok());
    world.run_until_shipped();
    ServerName ghost;
    for (const ServerName& server : source.servers()) {
      for (const auto& region : source.regions_on(server)) {
        if (region.table == kTable) ghost = server;
      }
    }
    REQUIRE(world.put("a", "1").ok());
    source.stop_server(ghost);
    for (int i = 0; i < steps; ++i) {
      while (!source.step_server(ghost)) source.transport->run_for(50ms);
      source.settle();
    }
    if (world.rows_of(world.target) != Rows{{"a", "0"}}) return found;
    takes_for_dead(source, ghost);
    const Rows before = world.rows_of(world.target);
    source.resume_server(ghost);
    source.run_for(1s);
    found.late += world.rows_of(world.target) == before ? 0 : 1;
    ++found.stories;
  }
}

}  // namespace

TEST_CASE("a server that was stopped and is taken for dead sends nothing to a removed peer") {
  const LateEdits found = tell_of_stops([](ClusterWorld& source, const ServerName&) {
    REQUIRE(source.run(RemovePeer(ports_elsewhere(), kPeer)).status.to_string() == "OK");
  });
  // It stops before the read, with the part in hand, before it gives the write to the client of the
  // other cluster, and twice after that: those two are late.
  CHECK(found.stories > 4);
  CHECK(found.late == 2);
}

TEST_CASE("a server that was stopped and fenced sends nothing, though its lease is not over") {
  const LateEdits found = tell_of_stops([](ClusterWorld& source, const ServerName& ghost) {
    REQUIRE(cluster::LogDirectories(source.files, source.layout).fence(ghost).ok());
  });
  // It stops after it has looked at the fence, too.
  CHECK(found.stories > 4);
  CHECK(found.late == 3);
}

TEST_CASE("a peer is not removed while a queue of it is being claimed") {
  TwoClusters world(1, 1);
  ClusterWorld& source = world.source;
  const cluster::QueueFiles queues(source.files, source.layout);
  const cluster::PeerFiles peers(source.files, source.layout);
  world.add_peer();
  REQUIRE(source.run(DisablePeer(ports_elsewhere(), kPeer)).status.ok());
  REQUIRE(world.put("a", "1").ok());
  const ServerName dead = source.servers().front();
  source.kill_server(dead);
  const auto is_claiming = [&] {
    const auto live = source.master().executor().inspect().list();
    return std::ranges::any_of(live, [](const ProcedureInfo& each) {
      return each.type == ClaimQueues::kType && each.step_name == "DISPATCH";
    });
  };
  step_until(source, is_claiming);
  for (const ServerName& server : source.servers()) source.stop_server(server);
  const ProcedureId removal = source.submit(RemovePeer(ports_elsewhere(), kPeer));
  source.run_for(5s);
  CHECK(is_claiming());
  CHECK(peers.read(kPeer)->has_value());
  CHECK_FALSE(queues.queues(kPeer, dead)->empty());

  for (const ServerName& server : source.servers()) source.resume_server(server);
  REQUIRE(source.result_of(removal).status.to_string() == "OK");
  source.run_until_quiet();
  CHECK_FALSE(peers.read(kPeer)->has_value());
  CHECK(queues.directories()->empty());
  CHECK(world.queues().empty());
  CHECK(source.disorder().empty());
}

}  // namespace pv2::testing::peer_change_wait_test
