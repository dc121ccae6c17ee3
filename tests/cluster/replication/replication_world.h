// SPDX-License-Identifier: Apache-2.0
//
// TwoClusters: two whole clusters on one network, with a table of the same name in both, and the
// second as the peer of the first.

#pragma once

#include <pv2/procedures/add_peer.h>
#include <pv2/procedures/create_table.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/master/cluster_world.h"

namespace pv2::testing::replication_world {

using cluster::Mutation;
using cluster::MutationKind;
using cluster_world::ClusterWorld;

inline const TableName kTable{"default", "t"};
inline const std::string kPeer = "p";

using Rows = std::map<std::string, std::string>;

inline CreateTable create(const TableName& table, std::size_t regions) {
  return {ports_elsewhere(), {table, {"f"}}, even_split_keys(regions)};
}

/// Owned by one thread.
struct TwoClusters {
  using Adjust = std::function<void(ClusterWorld&)>;

  /// `adjust` is called with each of the two before anything starts.
  explicit TwoClusters(std::size_t source_regions = 3, std::size_t target_regions = 2,
                       const Adjust& adjust = {}) {
    if (adjust) {
      adjust(source);
      adjust(target);
    }
    begin(source, source_regions);
    begin(target, target_regions);
    client = source.connect();
    target_client = target.connect();
  }

  static void begin(ClusterWorld& world, std::size_t regions) {
    world.start_master();
    for (const char* host : {"rs1", "rs2", "rs3"}) world.start_server(host);
    world.run_until_quiet();
    REQUIRE(world.run(create(kTable, regions)).status.ok());
  }
  static void add_peer(ClusterWorld& from, const ClusterWorld& to,
                       std::vector<TableName> tables = {}) {
    const PeerConfig config{to.layout.root(), std::move(tables)};
    REQUIRE(from.run(AddPeer(ports_elsewhere(), {kPeer, config})).status.to_string() == "OK");
  }
  void add_peer() { add_peer(source, target); }

  cluster::WriteOutcome write(Mutation mutation) { return write_at(source, *client, mutation); }
  static cluster::WriteOutcome write_at(ClusterWorld& world, cluster::ClusterClient& at,
                                        Mutation mutation) {
    if (mutation.kind != MutationKind::kDeleteRow) {
      mutation.family = "f";
      mutation.qualifier = "q";
    }
    return world.answer<cluster::WriteOutcome>(
        [&](auto done) { at.write(kTable, {mutation}, {}, std::move(done)); });
  }
  cluster::WriteOutcome put(const std::string& row, const std::string& value) {
    return write({.row = row, .value = value});
  }
  cluster::WriteOutcome remove(const std::string& row) {
    return write({.kind = MutationKind::kDelete, .row = row});
  }

  /// Rows all over the table.
  Rows put_many(int count) {
    Rows rows;
    for (int i = 0; i < count; ++i) {
      const std::string row = std::string(1, static_cast<char>(i * 37)) + std::to_string(i);
      rows[row] = "v" + std::to_string(i);
      REQUIRE(put(row, rows[row]).ok());
    }
    return rows;
  }

  Rows rows_of(ClusterWorld& world, const TableName& table = kTable) const {
    const auto& at = &world == &source ? client : target_client;
    Rows rows;
    cluster::Scan range;
    for (bool is_more = true; is_more;) {
      const auto page = world.answer<Result<cluster::ScanPage>>(
          [&](auto done) { at->scan(table, range, std::move(done)); });
      REQUIRE(page.status().to_string() == "OK");
      for (const cluster::Cell& cell : page->cells) rows[cell.row] = cell.value;
      is_more = page->next_row.has_value();
      if (is_more) range = rest_of(std::move(range), *page);
    }
    return rows;
  }

  /// Of all queues of all servers of the first cluster.
  [[nodiscard]] std::uint64_t bytes_behind() const {
    std::uint64_t bytes = 0;
    for (const auto& queue : queues()) bytes += queue.bytes_behind;
    return bytes;
  }
  [[nodiscard]] std::vector<cluster::QueueStatus> queues() const { return queues_of(source); }
  [[nodiscard]] static std::vector<cluster::QueueStatus> queues_of(const ClusterWorld& world) {
    std::vector<cluster::QueueStatus> all;
    for (const ServerName& server : world.servers()) {
      for (const auto& peer : world.status_of(server).peers) {
        all.insert(all.end(), peer.queues.begin(), peer.queues.end());
      }
    }
    return all;
  }
  /// Whether each server's own queue is the only one left, and at its end.
  [[nodiscard]] static bool is_shipped(const ClusterWorld& world) {
    for (const ServerName& server : world.servers()) {
      const auto peers = world.status_of(server).peers;
      if (peers.empty()) return false;  // it has not read them yet
      for (const auto& peer : peers) {
        if (peer.queues.size() != 1 || peer.queues.front().bytes_behind != 0) return false;
      }
    }
    return true;
  }
  /// Kills the first server of the first cluster. When this returns, others have its regions and
  /// its queues.
  ServerName lose_first_server() {
    const ServerName dead = source.servers().front();
    source.kill_server(dead);
    source.run_for(std::chrono::seconds(15));  // the master has noticed
    source.run_until_quiet();
    return dead;
  }
  void run_until_shipped() {
    source.run_until_quiet();
    source.run_until([this] { return is_shipped(source); });
  }

  ClusterWorld source;
  ClusterWorld target{source, "/other"};
  std::unique_ptr<cluster::ClusterClient> client;
  std::unique_ptr<cluster::ClusterClient> target_client;
};

}  // namespace pv2::testing::replication_world
