// SPDX-License-Identifier: Apache-2.0
//
// A random story of two clusters: clients write, and meanwhile servers and masters of both die,
// regions move, are split and merged, and the peer is disabled and enabled. Servers of the source
// stop and go on, perhaps after they were taken for dead; and dead ones have made their queue once
// more. Logs are short, so that queues cross many of them. When everything has become quiet, the
// copy has to equal the source.

#include <pv2/procedures/disable_peer.h>
#include <pv2/procedures/enable_peer.h>
#include <pv2/procedures/merge_table_regions.h>
#include <pv2/procedures/split_table_region.h>
#include <pv2/procedures/transit_region_state.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "cluster/replication/replication_world.h"
#include "pv2/base/random.h"
#include "pv2/testing/seeds.h"
#include "replication/queue_files.h"

namespace pv2::testing::random_replication_test {
namespace {

using namespace pv2::testing::replication_world;  // NOLINT: of the test
using cluster::ClusterClient;
using cluster::LogPosition;
using cluster::WriteOutcome;

constexpr Duration kTakenForDead = std::chrono::seconds(15);

class Story {
 public:
  explicit Story(std::uint64_t seed)
      : random_(seed), world_(3, 2, [](ClusterWorld& world) {
          world.adjust_server = [](cluster::RegionServerOptions& options) {
            options.log_bytes_max = 2048;
            options.logs_max = 2;
          };
          world.adjust_master = [](cluster::MasterOptions& options) {
            options.clean_up_every = std::chrono::milliseconds(100);
            options.old_logs_kept = std::chrono::milliseconds(0);
            options.archive_kept = std::chrono::milliseconds(0);
          };
        }) {
    world_.add_peer();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    if (stopped_) resume_server();
    // Those that went on hear that they are dead, and the last late queue is claimed.
    world_.source.run_for(std::chrono::minutes(2));
    while (!is_enabled_) toggle_peer();
    for (ClusterWorld* const each : {&world_.source, &world_.target}) each->run_until_quiet();
    world_.source.run_until([this] { return open_writes_ == 0; });
    world_.run_until_shipped();
  }

  void check() {
    const Rows source = world_.rows_of(world_.source);
    const Rows target = world_.rows_of(world_.target);
    CHECK(source == target);
    CHECK(writes_ > 0);
    for (ClusterWorld* const each : {&world_.source, &world_.target}) {
      for (const std::string& finding : each->disorder()) FAIL_CHECK(finding);
    }
  }

 private:
  void step() {
    const std::uint64_t dice = random_.below(100);
    if (dice < 56) return write();
    if (dice < 60) return stopped_ ? resume_server() : stop_server();
    if (dice < 62) return leave_late_queue();
    if (dice < 74) return pass_time();
    if (dice < 78) return replace_server(world_.source);
    if (dice < 80) return replace_server(world_.target);
    if (dice < 82) return replace_master(random_.below(2) == 0 ? world_.source : world_.target);
    if (dice < 90) return move(random_.below(4) == 0 ? world_.target : world_.source);
    if (dice < 94) return split(random_.below(4) == 0 ? world_.target : world_.source);
    if (dice < 97) return merge(world_.source);
    toggle_peer();
  }

  ClusterClient& client_of(ClusterWorld& world) {
    return &world == &world_.source ? *world_.client : *world_.target_client;
  }
  std::string random_row() {
    return std::string(1, static_cast<char>(random_.below(256))) + std::to_string(random_.below(2));
  }

  void write() {
    Mutation mutation{.row = random_row(), .family = "f", .qualifier = "q"};
    const std::uint64_t dice = random_.below(10);
    if (dice < 4) {
      mutation.value = std::to_string(random_.below(1000));
    } else if (dice < 6) {
      mutation.kind = MutationKind::kDelete;
    } else if (dice < 7) {
      mutation = {.kind = MutationKind::kDeleteRow, .row = mutation.row};
    } else if (dice < 9) {
      mutation.kind = MutationKind::kIncrement;
      mutation.amount = 1;
    } else {
      mutation.kind = MutationKind::kAppend;
      mutation.value = "7";
    }
    ++open_writes_;
    // Refused is good too: the number may have become too long.
    world_.client->write(kTable, {mutation}, {}, [this](const WriteOutcome& outcome) {
      --open_writes_;
      if (outcome.ok()) ++writes_;
    });
    world_.source.settle();
  }

  void pass_time() { world_.source.run_for(std::chrono::milliseconds(random_.below(4000))); }

  /// Another one comes in its place.
  void stop_server() {
    const auto servers = world_.source.servers();
    if (servers.size() < 2) return;
    stopped_ = servers[random_.below(servers.size())];
    were_stopped_.insert(*stopped_);
    world_.source.stop_server(*stopped_);
    start_another();
    if (random_.below(2) == 0) world_.source.run_for(kTakenForDead);
  }
  void resume_server() {
    const auto servers = world_.source.servers();
    const ServerName name = *std::exchange(stopped_, std::nullopt);
    if (std::ranges::find(servers, name) != servers.end()) world_.source.resume_server(name);
  }
  void start_another() {
    world_.source.start_server("another" + std::to_string(++others_));
    world_.source.settle();
  }

  /// A server dies. Its queue, which it had perhaps made again, is found when it was claimed.
  void leave_late_queue() {
    const auto servers = world_.source.servers();
    if (servers.size() < 3) return;
    const ServerName dead = servers[random_.below(servers.size())];
    std::optional<LogPosition> end;
    for (const auto& peer : world_.source.status_of(dead).peers) {
      for (const auto& queue : peer.queues) {
        if (queue.owner == dead) end = {queue.log, queue.offset + queue.bytes_behind};
      }
    }
    world_.source.kill_server(dead);
    start_another();
    world_.source.run_for(std::chrono::milliseconds(random_.below(20'000)));
    if (end) {
      REQUIRE(cluster::QueueFiles(world_.source.files, world_.source.layout)
                  .make(kPeer, dead, *end)
                  .ok());
    }
  }

  void replace_server(ClusterWorld& world) {
    const auto servers = world.servers();
    if (servers.size() < 2) return;
    const std::string host = servers[random_.below(servers.size())].host;
    const bool is_asked = random_.below(3) == 0 && world.has_master();
    for (const ServerName& server : servers) {
      if (server.host != host) continue;
      if (is_asked && !were_stopped_.contains(server)) {
        world.end_server(server);
      } else {
        world.kill_server(server);
      }
    }
    if (random_.below(3) == 0) pass_time();
    world.start_server(host);
    world.settle();
  }

  void replace_master(ClusterWorld& world) {
    world.kill_master();
    if (random_.below(2) == 0) pass_time();
    world.start_master();
    world.settle();
  }

  std::vector<RegionRow> regions(ClusterWorld& world) {
    if (!world.has_master() || !world.master().is_online()) return {};
    const auto rows = world.answer<Result<std::vector<RegionRow>>>(
        [&](auto done) { client_of(world).regions_of(kTable, std::move(done)); });
    return rows.ok() ? *rows : std::vector<RegionRow>();
  }
  /// Begins a procedure and does not wait for its end.
  template <class P>
  void begin(ClusterWorld& world, P procedure) {
    if (!world.has_master() || !world.master().is_online()) return;
    world.submit(std::move(procedure));
  }

  void move(ClusterWorld& world) {
    const auto rows = regions(world);
    const auto servers = world.servers();
    if (rows.empty() || servers.empty()) return;
    begin(world,
          TransitRegionState::move(ports_elsewhere(), rows[random_.below(rows.size())].region,
                                   servers[random_.below(servers.size())]));
  }

  void split(ClusterWorld& world) {
    const auto rows = regions(world);
    if (rows.empty() || rows.size() > 8) return;
    const std::string row = random_row();
    for (const RegionRow& each : rows) {
      const RegionInfo& region = each.region;
      if (row <= region.start_key || (!region.end_key.empty() && row >= region.end_key)) continue;
      return begin(world, SplitTableRegion(ports_elsewhere(), region, row));
    }
  }

  void merge(ClusterWorld& world) {
    const auto rows = regions(world);
    if (rows.size() < 2) return;
    const std::size_t first = random_.below(rows.size() - 1);
    if (rows[first].region.end_key != rows[first + 1].region.start_key) return;
    begin(world,
          MergeTableRegions(ports_elsewhere(), {rows[first].region, rows[first + 1].region}));
  }

  void toggle_peer() {
    world_.source.run_until_quiet();
    is_enabled_ = !is_enabled_;
    const ProcedureResult result = is_enabled_
                                       ? world_.source.run(EnablePeer(ports_elsewhere(), kPeer))
                                       : world_.source.run(DisablePeer(ports_elsewhere(), kPeer));
    REQUIRE(result.status.to_string() == "OK");
  }

  Random random_;
  std::optional<ServerName> stopped_;
  std::set<ServerName>
      were_stopped_;  ///< They end by themselves when they hear that they are dead.
  int others_ = 0;    ///< Servers on hosts of their own.
  int open_writes_ = 0;
  int writes_ = 0;
  bool is_enabled_ = true;
  TwoClusters world_;
};

}  // namespace

TEST_CASE("whatever happens to two clusters, the copy equals the source in the end") {
  const Seeds seeds = seeds_from_environment(6);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    INFO("PV2_TEST_SEED=" << seed);
    Story story(seed);
    story.run(150);
    story.check();
  }
}

}  // namespace pv2::testing::random_replication_test
