// SPDX-License-Identifier: Apache-2.0
//
// A server opens its first region only when it has read the peers: what it wrote before would be in
// no queue. The peers are read on a queue of their own, which may be slow.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cluster/replication/replication_world.h"
#include "server/replication_host.h"

namespace pv2::testing::first_region_test {
namespace {

using namespace pv2::testing::replication_world;  // NOLINT: of the test
using namespace std::chrono_literals;

/// Answers when the test says so. Knows no peers.
class SlowHost final : public cluster::ReplicationHost {
 public:
  explicit SlowHost(std::vector<Done>& waiting) : waiting_(waiting) {}
  void prepare(Done done) override { waiting_.push_back(std::move(done)); }
  void refresh_peer(std::string, Done done) override { done({}); }
  void claim_queues(ServerName, std::string, Done done) override { done({}); }
  [[nodiscard]] std::vector<cluster::PeerStatus> status() const override { return {}; }

 private:
  std::vector<Done>& waiting_;
};

struct World {
  World() {
    cluster.make_replication = [this](const cluster::ReplicationGround&) {
      std::unique_ptr<cluster::ReplicationHost> host = std::make_unique<SlowHost>(waiting);
      return Result<std::unique_ptr<cluster::ReplicationHost>>(std::move(host));
    };
    cluster.start_master();
    server = cluster.start_server("rs1");
  }
  void answer(const Status& status) {
    for (const auto& done : std::exchange(waiting, {})) done(status);
  }
  [[nodiscard]] bool serves() const {
    const auto regions = cluster.status_of(server).regions;
    return std::ranges::any_of(regions, &cluster::RegionStatus::serves);
  }

  std::vector<cluster::ReplicationHost::Done> waiting;
  ClusterWorld cluster;
  ServerName server;
};

}  // namespace

TEST_CASE("a server opens no region before it has read the peers") {
  World world;
  world.cluster.run_for(5s);
  CHECK_FALSE(world.waiting.empty());
  CHECK_FALSE(world.serves());

  world.answer({});
  world.cluster.run_until([&] {
    world.answer({});
    return world.serves();
  });
  CHECK(world.cluster.disorder().empty());
}

TEST_CASE("a server that cannot read the peers opens no region, and opens it when it can") {
  World world;
  for (int i = 0; i < 100; ++i) {
    world.answer({StatusCode::kUnavailable, "the disk does not answer"});
    world.cluster.run_for(50ms);
    CHECK_FALSE(world.serves());
  }
  world.cluster.run_until([&] {
    world.answer({});
    return world.serves();
  });
  CHECK(world.cluster.disorder().empty());
}

}  // namespace pv2::testing::first_region_test
