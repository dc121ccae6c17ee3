// SPDX-License-Identifier: Apache-2.0
//
// Two queues of one dead server: a server claims its queue, and the dead one, which does not know
// that it is dead, makes the queue once more at the end of its log. The late one is claimed too,
// perhaps by another server, which has nothing to ship by its position. When that server gets the
// first queue as well, it has to go back to the first position.

#include <pv2/procedures/enable_peer.h>

#include <algorithm>
#include <vector>

#include "cluster/replication/unshipped_rows.h"

namespace pv2::testing::late_queue_test {
namespace {

using namespace pv2::testing::replication_world;  // NOLINT: of the test
using namespace std::chrono_literals;

struct TwoQueues : UnshippedRows {
  cluster::LogPosition first_position;
  cluster::LogPosition end;  ///< Of the dead server's log.
  ServerName first;          ///< Who has claimed the first queue.
  ServerName second;         ///< Who has claimed the late one.

  TwoQueues() {
    for (const auto& peer : source.status_of(dead).peers) {
      for (const auto& queue : peer.queues) {
        first_position = {queue.log, queue.offset};
        end = {queue.log, queue.offset + queue.bytes_behind};
      }
    }
    REQUIRE(first_position < end);
    lose_server();
    first = holder_besides({});
    // The master chooses one of the servers; sooner or later another one.
    for (int i = 4; i < 10 && second.empty(); ++i) {
      source.start_server("rs" + std::to_string(i));
      source.run_for(5s);
      source.run_until_quiet();
      REQUIRE(queues.make(kPeer, dead, end).ok());
      source.run_for(2min);
      second = holder_besides(first);
    }
    REQUIRE_FALSE(second.empty());
    REQUIRE(in_memory() == std::vector{first_position, end});
  }

  /// Both queues come to one server.
  void meet() {
    for (const ServerName& server : source.servers()) {
      if (server != second && server != first) kill(server);
    }
    kill(first);
  }
  void kill(const ServerName& server) {
    source.kill_server(server);
    source.run_for(15s);
    source.run_until_quiet();
  }
  [[nodiscard]] ServerName holder_besides(const ServerName& except) const {
    ServerName found;
    for (const auto& queue : *queues.all()) {
      if (queue.owner == dead && queue.server != except) found = queue.server;
    }
    return found;
  }
  /// What the servers know of the positions, in order.
  [[nodiscard]] std::vector<cluster::LogPosition> in_memory() const {
    std::vector<cluster::LogPosition> all;
    for (const auto& queue : world.queues()) {
      if (queue.owner == dead) all.push_back({queue.log, queue.offset});
    }
    std::ranges::sort(all);
    return all;
  }
};

}  // namespace

TEST_CASE("a server that gets a queue which it has at a later position goes back") {
  TwoQueues story;
  story.meet();
  story.source.run_for(10s);
  CHECK(story.in_memory() == std::vector{story.first_position});
  REQUIRE(story.source.run(EnablePeer(ports_elsewhere(), kPeer)).status.ok());
  story.check_shipped();
}

TEST_CASE("the recovery of a server ends when one of two positions of a queue is damaged") {
  TwoQueues story;
  const std::string path = story.source.layout.queue_position(kPeer, story.second, story.dead);
  story.source.env.set_contents(path, "x");
  story.meet();
  CHECK(story.source.env.contents(path) == "x");
  story.source.run_for(10s);
  int problems = 0;
  for (const auto& queue : story.world.queues()) problems += queue.problem.empty() ? 0 : 1;
  CHECK(problems == 1);
  CHECK(story.source.disorder().empty());
}

}  // namespace pv2::testing::late_queue_test
