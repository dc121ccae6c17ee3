// SPDX-License-Identifier: Apache-2.0
//
// The changes of replication peers: what is stored, what every live server knows, and what is
// refused.

#include <pv2/procedures/add_peer.h>
#include <pv2/procedures/disable_peer.h>
#include <pv2/procedures/enable_peer.h>
#include <pv2/procedures/remove_peer.h>
#include <pv2/procedures/server_crash.h>
#include <pv2/procedures/update_peer_config.h>

#include "procedure_drill.h"
#include "procedure_story.h"

namespace pv2::testing::peer_test {
namespace {

const PeerConfig kConfig{"/clusters/b", {}};
const PeerConfig kOneTable{"/clusters/b", {{"default", "t"}}};

PlotOperation add(std::string id = "p", PeerConfig config = kConfig) {
  return operation([=](MemoryCluster& cluster) {
    return AddPeer(cluster.ports(), {id, config, true});
  });
}
template <class P>
PlotOperation change(std::string id = "p") {
  return operation([=](MemoryCluster& cluster) { return P(cluster.ports(), id); });
}
PlotOperation update(PeerConfig config, std::string id = "p") {
  return operation(
      [=](MemoryCluster& cluster) { return UpdatePeerConfig(cluster.ports(), id, config); });
}

/// A change after which `peer` is stored; nullopt: none is. find_disorder() compares what servers
/// know with what is stored.
ProcedurePlot changing(PlotOperation subject, std::vector<PlotOperation> before,
                       std::optional<PeerRow> peer) {
  return {.subject = std::move(subject),
          .before = std::move(before),
          .check = [peer](MemoryCluster& cluster, Findings& findings) {
            const ClusterSnapshot snapshot = cluster.snapshot();
            findings.expect(snapshot.peers.size() == (peer ? 1 : 0), "the right peers are stored");
            if (peer && snapshot.peers.contains("p")) {
              findings.expect(snapshot.peers.at("p") == *peer, "the peer is stored as decided");
            }
            findings.expect(peer || snapshot.queues.empty(), "no queue is left");
          }};
}

struct NamedPlot {
  std::string name;
  ProcedurePlot plot;
};

std::vector<NamedPlot> all_changes() {
  return {
      {"AddPeer", changing(add(), {}, PeerRow{"p", kConfig, true})},
      {"RemovePeer", changing(change<RemovePeer>(), {add()}, std::nullopt)},
      {"DisablePeer", changing(change<DisablePeer>(), {add()}, PeerRow{"p", kConfig, false})},
      {"EnablePeer",
       changing(change<EnablePeer>(), {add(), change<DisablePeer>()}, PeerRow{"p", kConfig, true})},
      {"UpdatePeerConfig", changing(update(kOneTable), {add()}, PeerRow{"p", kOneTable, true})},
  };
}

}  // namespace

TEST_CASE("a change of a peer is stored, and every live server knows it, whichever call fails") {
  for (const NamedPlot& change : all_changes()) {
    CAPTURE(change.name);
    CHECK(check_faults(change.plot) > 40);
  }
}

TEST_CASE("a change of a peer can be aborted until it is stored") {
  for (const NamedPlot& change : all_changes()) {
    CAPTURE(change.name);
    CHECK(check_aborts(change.plot) >= 3);
  }
}

TEST_CASE("a change of a peer ends the same whichever store write the machine crashes at") {
  for (const NamedPlot& change : all_changes()) {
    CAPTURE(change.name);
    check_crashes(change.plot);
  }
}

TEST_CASE(
    "a change of a peer that is aborted ends the same whichever store write the machine crashes "
    "at") {
  for (const NamedPlot& change : all_changes()) {
    CAPTURE(change.name);
    check_crashes_in_rollback(change.plot);
  }
}

TEST_CASE("changes of peers that cannot be are refused, and change nothing") {
  check_refused({
      {add("a-b"), {}, StatusCode::kInvalidArgument, "peer 'a-b' is not a legal name"},
      {add(""), {}, StatusCode::kInvalidArgument, "is not a legal name"},
      {add("p", {"clusters/b", {}}), {}, StatusCode::kInvalidArgument, "not an absolute path"},
      {add("p", {std::string(MemoryCluster::kRoot), {}}),
       {},
       StatusCode::kFailedPrecondition,
       "is this cluster itself"},
      {update({std::string(MemoryCluster::kRoot), {{"default", "t"}}}),
       {},
       StatusCode::kFailedPrecondition,
       "is this cluster itself",
       [](MemoryCluster& cluster) {  // nobody could know when the peer was added
         cluster.ports().peers.write_peer({"p", {std::string(MemoryCluster::kRoot), {}}, true},
                                          "by hand", nobody<Status>());
         (void)cluster.deliver_all();
       }},
      {add("p", {"/b", {{"default", "../t"}}}), {}, StatusCode::kInvalidArgument, "table '../t'"},
      {add(), {add()}, StatusCode::kAlreadyExists, "peer p exists already"},
      {change<RemovePeer>(), {}, StatusCode::kNotFound, "peer p does not exist"},
      {change<EnablePeer>(), {}, StatusCode::kNotFound, "peer p does not exist"},
      {change<DisablePeer>(), {}, StatusCode::kNotFound, "peer p does not exist"},
      {update(kConfig), {}, StatusCode::kNotFound, "peer p does not exist"},
      {change<EnablePeer>(), {add()}, StatusCode::kFailedPrecondition, "is enabled already"},
      {change<DisablePeer>(),
       {add(), change<DisablePeer>()},
       StatusCode::kFailedPrecondition,
       "is disabled already"},
      {update({"b", {}}), {add()}, StatusCode::kInvalidArgument, "not an absolute path"},
      {update({"/c", {}}), {add()}, StatusCode::kFailedPrecondition, "cannot be changed to /c"},
      {add(),
       {add()},
       StatusCode::kFailedPrecondition,
       "still keeps a queue of an older peer p",
       [](MemoryCluster& cluster) {  // the peer is gone, and its queues are not
         cluster.ports().peers.remove_peer("p", "by hand", nobody<Status>());
         (void)cluster.deliver_all();
       }},
  });
}

TEST_CASE("a change of a peer does not wait for a server that crashes") {
  MemoryCluster cluster(Delivery::kQueued);
  const ServerName dying = cluster.add_server("rs1");
  (void)cluster.add_server("rs2");
  DeterministicExecutor executor(cluster);
  executor.open();
  cluster.kill_server(dying);

  const auto added = add().submit(executor, cluster);
  executor.advance(std::chrono::seconds(30));
  const auto waiting = executor->inspect().describe(*added);
  CHECK(waiting->step_name == "POST_PEER_MODIFICATION");  // it waits for a RefreshPeer
  CHECK(waiting->state == ProcedureState::kWaiting);
  (void)executor.submit(ServerCrash(cluster.ports(), dying), crash_nonce(dying));
  executor.run();

  CHECK(executor.result(*added).state == ProcedureState::kSuccess);
  CHECK(disorder(cluster) == "");
}

TEST_CASE("a queue that a late server begins while its peer is removed is removed too") {
  // At any moment before the last look: between the two passes over the queues, for example.
  std::size_t in_clean_up = 0;
  for (int turns = 0;; ++turns) {
    CAPTURE(turns);
    MemoryCluster cluster(Delivery::kQueued);
    const ServerName late = cluster.add_server("rs1");
    (void)cluster.add_server("rs2");
    DeterministicExecutor executor(cluster);
    executor.open();
    REQUIRE(add().submit(executor, cluster).ok());
    executor.run();
    const auto removed = change<RemovePeer>().submit(executor, cluster);
    for (int turn = 0; turn < turns; ++turn) {
      if (executor->run_until_idle(1) > 0 || cluster.deliver_one()) continue;
      (void)cluster.deliver_reports(*executor);
    }
    // AddPeer has looked once.
    if (cluster.calls(ClusterCall::kHasQueues) > 1) break;
    in_clean_up += cluster.calls(ClusterCall::kRemoveQueues);

    cluster.begin_queue(late, "p");
    executor.run();

    CHECK(executor.result(*removed).status.to_string() == "OK");
    CHECK(cluster.snapshot().queues.empty());
    CHECK(disorder(cluster) == "");
  }
  CHECK(in_clean_up > 3);
}

TEST_CASE("a server that starts while a peer is added knows it") {
  MemoryCluster cluster(Delivery::kQueued);
  (void)cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();
  const auto added = add().submit(executor, cluster);
  while (executor->inspect().describe(*added)->step_name != "REFRESH_PEER_ON_RS") {
    if (executor->run_until_idle(1) == 0) REQUIRE(cluster.deliver_one());
  }

  (void)cluster.add_server("rs2");
  executor.run();

  CHECK(executor.result(*added).state == ProcedureState::kSuccess);
  CHECK(disorder(cluster) == "");
}

}  // namespace pv2::testing::peer_test
