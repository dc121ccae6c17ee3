// SPDX-License-Identifier: Apache-2.0
//
// One damaged position stops its own queue, which says so, and nothing else: not the other queues
// of its server, not the changes of the peer, not the recovery of a server.

#include <pv2/procedures/enable_peer.h>
#include <pv2/procedures/update_peer_config.h>

#include "cluster/replication/unshipped_rows.h"

namespace pv2::testing::damaged_position_test {
namespace {

using namespace pv2::testing::replication_world;  // NOLINT: of the test
using namespace std::chrono_literals;

/// The queue of a dead server, whose position is damaged.
struct DamagedQueue : UnshippedRows {
  std::string bytes;  ///< Of the position.

  DamagedQueue() {
    damage();
    lose_server();
    source.run_for(10s);
  }
  void damage() {
    bytes = source.env.contents(path());
    source.env.set_contents(path(), "x");
  }
  void mend() { source.env.set_contents(path(), bytes); }
  /// Wherever the queue is.
  [[nodiscard]] std::string path() const {
    for (const auto& queue : *queues.all()) {
      if (queue.owner == dead) return source.layout.queue_position(kPeer, queue.server, dead);
    }
    FAIL("no queue of " << to_string(dead));
    return "";
  }
  /// What the servers say of the queue and of all others.
  void check_problems(const std::string& wanted) const {
    int found = 0;
    for (const auto& queue : world.queues()) {
      INFO(to_string(queue.owner) << ": " << queue.problem);
      const bool is_it = queue.owner == dead;
      found += is_it ? 1 : 0;
      CHECK(queue.problem.find(is_it ? wanted : "") != std::string::npos);
      CHECK(queue.problem.empty() == (!is_it || wanted.empty()));
    }
    CHECK(found == 1);
  }
};

}  // namespace

TEST_CASE("a damaged position stops its queue, which says so, and no other one") {
  DamagedQueue story;
  story.check_problems("cannot be read");
  REQUIRE(story.source.run(EnablePeer(ports_elsewhere(), kPeer)).status.to_string() == "OK");
  for (const char* row : {"a", "m", "z"}) {
    REQUIRE(story.world.put(row, "new").ok());
    story.rows[row] = "new";
  }
  story.source.run_for(1min);
  story.check_problems("cannot be read");
  const Rows there = story.world.rows_of(story.world.target);
  CHECK(there.size() < story.rows.size());
  for (const char* row : {"a", "m", "z"}) CHECK(there.contains(row));

  story.mend();
  story.check_shipped();
}

TEST_CASE("changes of a peer end while one of its positions is damaged") {
  DamagedQueue story;
  const std::string root = story.world.target.layout.root();
  const auto run = [&](auto change) {
    CHECK(story.source.run(std::move(change)).status.to_string() == "OK");
  };
  run(EnablePeer(ports_elsewhere(), kPeer));
  run(UpdatePeerConfig(ports_elsewhere(), kPeer, {root, {kTable}}));
  run(DisablePeer(ports_elsewhere(), kPeer));
  story.check_problems("cannot be read");
  story.mend();
  story.source.run_for(30s);
  story.check_problems("");
  run(EnablePeer(ports_elsewhere(), kPeer));
  story.check_shipped();
}

TEST_CASE("a position that is damaged while its queue is shipped stops it before the next record") {
  TwoClusters world;
  ClusterWorld& source = world.source;
  world.add_peer();
  Rows rows = world.put_many(10);
  world.run_until_shipped();
  const cluster::QueueFiles queues(source.files, source.layout);
  const auto stored = *queues.all();
  std::map<std::string, std::string> mended;
  for (const auto& queue : stored) {
    const std::string path = source.layout.queue_position(kPeer, queue.server, queue.owner);
    mended[path] = source.env.contents(path);
    source.env.set_contents(path, "x");
  }
  for (const auto& [row, value] : rows) {
    REQUIRE(world.put(row, "new").ok());
  }
  source.run_for(10s);
  CHECK(world.rows_of(world.target) == rows);
  for (const auto& [path, bytes] : mended) {
    CHECK(source.env.contents(path) == "x");
    source.env.set_contents(path, bytes);
  }
  world.run_until_shipped();
  for (auto& [row, value] : rows) value = "new";
  CHECK(world.rows_of(world.target) == rows);
}

}  // namespace pv2::testing::damaged_position_test
