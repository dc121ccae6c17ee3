// SPDX-License-Identifier: Apache-2.0
//
// A server that replicates cannot see the directory of the cluster for a moment. It must not forget
// a peer, create a queue that exists, or take a queue for shipped: edits would be left out.

#include <memory>
#include <optional>

#include "cluster/storage_fixture.h"
#include "cluster/vanishing_env.h"
#include "pv2/base/clock.h"
#include "pv2/rpc/memory_transport.h"
#include "replication/queue_files.h"
#include "replication/server_replication.h"
#include "storage/peer_files.h"

namespace pv2::testing::vanished_queue_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test

struct World {
  Disk disk;
  VanishingEnv env{disk.env};
  FileTree files{env, env.sync(), "1", env.open_sync(), disk.witness()};
  const QueueFiles stored{disk.files, disk.layout};
  const ServerName name{"rs1", 1};
  const ServerName dead{"rs1", 7};
  ManualWorkQueue work;
  std::unique_ptr<ServerLog> log;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryTransport> transport = std::make_shared<MemoryTransport>(clock);
  std::unique_ptr<ServerReplication> replication;

  World() {
    disk.make_table({whole_table()});
    log = *ServerLog::open(files, disk.layout, work, name);
    REQUIRE(PeerFiles(disk.files, disk.layout).write({"p", {"/other", {}}}).ok());
    disk.env.set_contents(ClusterLayout("/other").cluster_id(), "other");
    replication = std::make_unique<ServerReplication>(
        ReplicationGround{.server = name,
                          .files = files,
                          .layout = disk.layout,
                          .log = *log,
                          .work = work,
                          .transport = transport,
                          .clock = clock,
                          .check_lease = [] { return Status(); }});
  }
  Status run(const std::function<void(ReplicationHost::Done)>& call) {
    std::optional<Status> status;
    call([&](const Status& done) { status = done; });
    for (int turn = 0; turn < 20; ++turn) {
      work.run_all();
      transport->run_until_idle();
    }
    REQUIRE(status);
    return *status;
  }
  Status refresh() {
    return run([&](auto done) { replication->refresh_peer("p", done); });
  }
  Status prepare() {
    return run([&](auto done) { replication->prepare(done); });
  }
  [[nodiscard]] std::optional<LogPosition> position(const ServerName& server,
                                                    const ServerName& owner) const {
    return *stored.position("p", server, owner);
  }
};

// The queue begins before a write, and the log ends after it.
void write_after_queue(World& world) {
  REQUIRE(world.refresh().ok());
  bool is_written = false;
  WalEntry entry;
  entry.table = whole_table().table;
  entry.region_id = whole_table().id;
  entry.sequence = 1;
  world.log->append(entry, [&](const Status& done) { is_written = done.ok(); });
  world.work.run_all();
  REQUIRE(is_written);
}

void leave_queue_of_the_dead(World& world) {
  StorageServer server(world.disk, world.dead.start_code);
  REQUIRE(server.start().ok());
  REQUIRE(server.open(whole_table(), 1).ok());
  REQUIRE(server.write({put("a", "1")}).ok());
  REQUIRE(recover(world.disk, world.dead).ok());
  REQUIRE(world.stored.make("p", world.dead, {1, 0}).ok());
}

const std::vector<Verb<World>> kVerbs{
    {"a server that is prepared has a queue for each peer",
     {},
     [](World& world) -> Check {
       static_cast<void>(world.prepare().ok());
       // An order to open a region, when everything is there again.
       return [&world] { return !world.prepare().ok() || world.position(world.name, world.name); };
     }},
    {"a queue keeps its position", write_after_queue,
     [](World& world) -> Check {
       const auto before = world.position(world.name, world.name);
       static_cast<void>(world.refresh().ok());
       return [&world, before] { return world.position(world.name, world.name) == before; };
     }},
    {"a queue of a dead server is kept, and is claimed", leave_queue_of_the_dead,
     [](World& world) -> Check {
       const bool is_claimed =
           world.run([&](auto done) { world.replication->claim_queues(world.dead, "p", done); })
               .ok();
       return [&world, is_claimed] {
         const bool is_here = world.position(world.name, world.dead).has_value();
         return is_here || (!is_claimed && world.position(world.dead, world.dead));
       };
     }},
    {"a position is recorded, or the queue was not claimed", write_after_queue,
     [](World& world) -> Check {
       const auto recorded = QueueFiles(world.files, world.disk.layout)
                                 .record("p", world.name, world.name, {.from = {}, .to = {9, 9}});
       return [recorded] { return recorded.status().code() != StatusCode::kNotFound; };
     }},
    {"every peer is listed",
     {},
     [](World& world) -> Check {
       const auto ids = PeerFiles(world.files, world.disk.layout).ids();
       return [ids] { return !ids.ok() || ids->size() == 1; };
     }},
};

}  // namespace

TEST_CASE("no edit is left out because the cluster vanished for a moment") {
  vanish_within(kVerbs, "root/master/id");
}

}  // namespace pv2::testing::vanished_queue_test
