// SPDX-License-Identifier: Apache-2.0
//
// A server and a client with real sockets, threads and files, in one process.

#include <pv2/rpc/tcp_transport.h>

#include <atomic>
#include <thread>
#include <vector>

#include "cluster/server/simple_cluster.h"
#include "server/region_server.h"

namespace pv2::testing::threaded_server_test {
namespace {

using namespace cluster;         // NOLINT: the layer under test
using namespace simple_cluster;  // NOLINT

std::unique_ptr<ThreadWorkQueue> queue(std::string_view name) {
  auto started = ThreadWorkQueue::start(name);
  REQUIRE(started.ok());
  return *std::move(started);
}

}  // namespace

TEST_CASE("threads of clients add to one counter over real sockets, each addition once") {
  SimpleCluster cluster;
  const RegionInfo& region = cluster.region;
  auto transport = tcp_transport();
  REQUIRE(transport.ok());
  cluster.serve(*transport);
  std::unique_ptr<RegionServer> server;
  {
    const auto log = queue("log");
    const auto calls = queue("calls");
    const auto operations = queue("operations");
    const auto regions = queue("regions");
    auto started = RegionServer::start(
        {.host = "rs1", .root = cluster.root},
        {.transport = *transport,
         .clock = std::make_shared<SystemClock>(),
         .files = cluster.files,
         .queues = {*log, *calls, *operations, *regions, *log, *calls, *regions},
         .on_end = [](const Status&) {}});
    REQUIRE(started.status().to_string() == "OK");
    server = *std::move(started);
    const ServerName name = cluster.registered.get_future().get();
    CHECK(name == server->name());
    cluster.open_regions(*transport);

    auto client =
        ClusterClient::open({.find_master = master_of_root(cluster.root), .transport = *transport});
    REQUIRE(client.ok());
    std::atomic<int> done{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          if ((*client)->increment(region.table, "a", "f", "n", 1).ok()) ++done;
        }
      });
    }
    threads.emplace_back([&] { CHECK((*client)->flush(region).ok()); });
    for (std::thread& thread : threads) thread.join();
    CHECK(done == 200);
    const auto cells = (*client)->get(region.table, "a");
    REQUIRE(cells.ok());
    REQUIRE(cells->size() == 1);
    CHECK(cells->at(0).value == "200");
    CHECK((*client)->compact(region).ok());
    const auto status = (*client)->server_status(name);
    REQUIRE(status.ok());
    CHECK(status->regions.size() == 2);
    CHECK(cluster.taken == 2);

    std::promise<void> stopped;
    server->stop([&] { stopped.set_value(); });
    stopped.get_future().wait();
    CHECK(cluster.has_left);
    CHECK(server->status().regions.empty());
  }
  server.reset();
}

}  // namespace pv2::testing::threaded_server_test
