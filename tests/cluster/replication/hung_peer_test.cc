// SPDX-License-Identifier: Apache-2.0
//
// The file system of a peer's directory hangs: a read there does not come back. That keeps nobody
// from anything but the work with this peer.

#include <leveldb/env.h>
#include <pv2/engine/inspection.h>
#include <pv2/procedures/remove_peer.h>

#include <algorithm>
#include <functional>
#include <string>

#include "cluster/master/parts_world.h"
#include "cluster/replication/replication_world.h"
#include "cluster/storage_fixture.h"
#include "master/peer_storage_port.h"

namespace pv2::testing::hung_peer_test {
namespace {

using namespace pv2::testing::replication_world;  // NOLINT: of the test
using namespace std::chrono_literals;

/// What is known of a procedure that has not ended.
std::optional<ProcedureInfo> find(ClusterWorld& world, ProcedureId id) {
  const auto live = world.master().executor().inspect().list();
  const auto found = std::ranges::find(live, id, &ProcedureInfo::id);
  return found == live.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

TEST_CASE("the master goes on while the directory of a peer that is being added hangs") {
  const bool has_new_master = GENERATE(false, true);
  TwoClusters world;
  ClusterWorld& source = world.source;
  source.hung_peers = {kPeer};
  const ProcedureId addition =
      source.submit(AddPeer(ports_elsewhere(), {kPeer, {world.target.layout.root(), {}}}));
  source.run_for(1s);
  if (has_new_master) {
    source.kill_master();
    source.start_master();
  }

  CHECK(source.run(create({"default", "another"}, 1)).status.to_string() == "OK");
  const ServerName dead = source.servers().front();
  source.kill_server(dead);
  const auto is_retired = [&] {
    return source.master().is_online() &&
           source.master().rows().server(dead).state == ServerState::kRetired;
  };
  source.run_until(is_retired);
  CHECK(source.run(RemovePeer(ports_elsewhere(), "unknown")).status.code() ==
        StatusCode::kNotFound);
  CHECK(find(source, addition).has_value());

  const auto aborted = source.answer<Status>([&](auto done) {
    source.master().executor().async().abort(addition, {.reason = "it hangs", .who = "test"}, done);
  });
  CHECK(aborted.to_string() == "OK");
  CHECK(source.result_of(addition).status.code() == StatusCode::kAborted);
  source.hung_peers.clear();
  world.add_peer();
  REQUIRE(world.put("a", "1").ok());
  world.run_until_shipped();
  CHECK(world.rows_of(world.target) == Rows{{"a", "1"}});
}

TEST_CASE("a server goes on while the directory of a peer hangs, and the peer can be removed") {
  TwoClusters world;
  ClusterWorld& source = world.source;
  ClusterWorld third(source, "/third");
  TwoClusters::begin(third, 1);
  const auto at_third = third.connect();
  world.add_peer();
  REQUIRE(source.run(AddPeer(ports_elsewhere(), {"healthy", {"/third", {}}})).status.ok());
  source.hung_peers = {kPeer};
  REQUIRE(world.put("a", "1").ok());

  source.run_until([&] { return source.get(*at_third, kTable, "a") == "1"; });
  source.run_for(15s);
  const auto queues = world.queues();
  CHECK(std::ranges::any_of(queues, [](const cluster::QueueStatus& queue) {
    return queue.problem.find("does not answer") != std::string::npos;
  }));
  const ServerName dead = world.lose_first_server();
  CHECK(source.master().rows().server(dead).state == ServerState::kRetired);

  CHECK(source.run(RemovePeer(ports_elsewhere(), kPeer)).status.to_string() == "OK");
  source.hung_peers.clear();
  source.run_for(30s);
  CHECK(world.rows_of(world.target).empty());
}

namespace {

/// Calls back before it opens a file.
class SlowEnv final : public leveldb::EnvWrapper {
 public:
  explicit SlowEnv(CrashEnv& env) : EnvWrapper(env.as_env()) {}
  leveldb::Status NewSequentialFile(const std::string& file,
                                    leveldb::SequentialFile** result) override {
    on_open(file);
    return target()->NewSequentialFile(file, result);
  }
  std::function<void(const std::string& file)> on_open = [](const std::string&) {};
};

/// The port, with a queue for reads of peers that the test runs.
struct Port : parts_world::PartsWorld {
  using Answer = parts_world::Wait<Result<bool>>;

  Port() {
    for (const char* const root : {"/root", "/other", "/third"}) {
      disk.env.set_contents(cluster::ClusterLayout(root).cluster_id(), root);
    }
  }
  ~Port() { port.end(); }
  void ask(const std::string& root, const Answer& answer) {
    port.is_own_cluster(root, answer.completion());
    settle();
  }

  Disk disk;
  cluster::ManualWorkQueue peer_reads;
  SlowEnv env{disk.env};
  cluster::FileTree files{env, disk.env.directory_sync()};
  cluster::PeerFiles peers{files, cluster::ClusterLayout("/root")};
  cluster::PeerStoragePort port{transport, peers, work, peer_reads};
};

}  // namespace

TEST_CASE("a read of a peer that hangs is given up when it has had its time") {
  Port world;
  Port::Answer answer;
  world.ask("/other", answer);
  world.run_for(8s);  // it waits for other reads
  int opened = 0;
  world.env.on_open = [&](const std::string& file) {
    if (file != cluster::ClusterLayout("/other").cluster_id()) return;
    ++opened;
    world.run_for(9s);
    CHECK_FALSE(answer.is_answered());
    world.run_for(2s);
    REQUIRE(answer.is_answered());
  };

  CHECK(world.peer_reads.run_one());

  CHECK(opened == 1);
  CHECK(answer.answer().status().code() == StatusCode::kUnavailable);
  const std::string message(answer.answer().status().message());
  CHECK(message.find("the directory /other of the peer does not answer") != std::string::npos);
}

TEST_CASE(
    "a read of a peer that waits for others is given up, and is the only one of its directory") {
  Port world;
  Port::Answer first;
  Port::Answer second;
  Port::Answer other;
  world.ask("/root", first);
  world.run_for(9s);
  CHECK_FALSE(first.is_answered());
  world.run_for(2s);
  CHECK(first.answer().status().code() == StatusCode::kUnavailable);
  const std::string message(first.answer().status().message());
  CHECK(message.find("the directory /root of the peer was not read") != std::string::npos);
  CHECK(message.find("of other clusters hang") != std::string::npos);

  world.ask("/root", second);
  world.ask("/other", other);
  CHECK(world.peer_reads.run_one());  // the others hang no more
  world.settle();
  CHECK(second.answer().value());
  CHECK_FALSE(other.is_answered());
  CHECK(world.peer_reads.run_one());
  CHECK(world.peer_reads.empty());
  world.settle();
  CHECK_FALSE(other.answer().value());
}

}  // namespace pv2::testing::hung_peer_test
