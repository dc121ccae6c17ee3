// SPDX-License-Identifier: Apache-2.0
//
// RegionWorld: the start of most stories about regions and servers: a table on some servers, with
// rows that were acknowledged. It tests nothing by itself, but its check_end() says what must hold
// at the end of each of them.

#pragma once

#include <pv2/engine/async_executor.h>
#include <pv2/engine/inspection.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/server_crash.h>
#include <pv2/procedures/transit_region_state.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "deterministic_executor.h"

namespace pv2::testing {

/// Owned by one thread.
class RegionWorld {
 public:
  /// Servers rs1, rs2, ..., and table default:t of `regions` regions, spread over them.
  explicit RegionWorld(std::size_t regions = 1, std::size_t servers_wanted = 3,
                       Delivery delivery = Delivery::kInline)
      : cluster(delivery) {
    for (std::size_t i = 1; i <= servers_wanted; ++i) {
      servers.push_back(cluster.add_server("rs" + std::to_string(i)));
    }
    executor.open();
    must_end(submit(CreateTable(cluster.ports(), table_t(), even_split_keys(regions))));
    write_rows();
  }

  /// Submits without waiting for the cluster: no answer and no report is delivered.
  template <class P>
  ProcedureId submit(P procedure, Nonce nonce = {}) const {
    const auto answer = std::make_shared<std::optional<Result<Submitted>>>();
    executor->async().submit(std::move(procedure), {.nonce = nonce},
                             [answer](Result<Submitted> result) { *answer = std::move(result); });
    for (int turn = 0; turn < 1000 && !*answer; ++turn) (void)executor->run_until_idle(1);
    REQUIRE(answer->has_value());
    REQUIRE((*answer)->status().to_string() == "OK");
    return (**answer)->id;
  }
  /// Tells the master that a server is dead.
  ProcedureId report_death(const ServerName& server) {
    return submit(ServerCrash(cluster.ports(), server), crash_nonce(server));
  }
  ProcedureId kill(const ServerName& server) {
    cluster.kill_server(server);
    return report_death(server);
  }
  /// The server dies, and is recorded as crashed before any report that is on its way arrives.
  ProcedureId kill_unheard(const ServerName& server) {
    const ProcedureId id = kill(server);
    executor->run_until_idle();
    REQUIRE(state_of(server) != ServerState::kOnline);
    return id;
  }
  /// Runs until one more call of that kind was made, and not further than that.
  void run_to(ClusterCall call) {
    const std::size_t calls = cluster.calls(call);
    for (int turn = 0; turn < 1000 && cluster.calls(call) == calls; ++turn) {
      if (executor->run_until_idle(1) == 0) (void)cluster.deliver_reports(*executor);
    }
    REQUIRE(cluster.calls(call) > calls);
  }
  /// Runs everything, and requires that `id` succeeds.
  std::string must_end(ProcedureId id) const {
    executor.run();
    const ProcedureResult result = executor.result(id);
    REQUIRE(result.status.to_string() == "OK");
    return result.result;
  }
  /// Some rows for each region. All that are acknowledged have to be there at the end.
  void write_rows() {
    ++generation_;
    for (const char first : {'\x01', '\x41', '\x81', '\xc1', 'a', 'z'}) {
      const std::string row = first + std::to_string(generation_);
      if (cluster.write_row(table_t().name, row)) written_.insert(row);
    }
  }

  [[nodiscard]] std::vector<RegionRow> rows() const {
    std::vector<RegionRow> rows = cluster.snapshot().regions;
    std::ranges::sort(rows, {}, [](const RegionRow& row) { return row.region.start_key; });
    return rows;
  }
  [[nodiscard]] RegionRow row(std::size_t index = 0) const { return rows().at(index); }
  [[nodiscard]] ServerName home(std::size_t index = 0) const { return row(index).server; }
  /// A live server that is not that one.
  [[nodiscard]] ServerName other_than(const ServerName& server) const {
    return *std::ranges::find_if(servers, [&](const ServerName& other) { return other != server; });
  }
  [[nodiscard]] ServerState state_of(const ServerName& server) const {
    for (const ServerRow& row : cluster.snapshot().servers) {
      if (row.name == server) return row.state;
    }
    return ServerState::kOnline;
  }
  [[nodiscard]] std::size_t regions_on(const ServerName& server) const {
    return static_cast<std::size_t>(std::ranges::count_if(rows(), [&](const RegionRow& row) {
      return row.server == server && row.state == RegionState::kOpen;
    }));
  }
  /// How many servers have the region open.
  [[nodiscard]] std::size_t holders(const std::string& region) const {
    const ClusterSnapshot snapshot = cluster.snapshot();
    return static_cast<std::size_t>(std::ranges::count_if(
        snapshot.open, [&](const auto& server) { return server.second.contains(region); }));
  }
  [[nodiscard]] std::string step_of(ProcedureId id) const {
    const Result<ProcedureInfo> info = executor->inspect().describe(id);
    return info.ok() ? std::string(info->step_name) : info.status().to_string();
  }
  /// The first live procedure of that type.
  [[nodiscard]] std::optional<ProcedureInfo> find(std::string_view type) const {
    for (const ProcedureInfo& info : executor->inspect().list()) {
      if (info.type == type) return info;
    }
    return std::nullopt;
  }
  /// Lets an operator abort a procedure.
  [[nodiscard]] Status abort(ProcedureId id) const {
    const auto answer = std::make_shared<std::optional<Status>>();
    executor->async().abort(id, {.reason = "the test says so", .who = "test"},
                            [answer](const Status& status) { *answer = status; });
    for (int turn = 0; turn < 1000 && !*answer; ++turn) (void)executor->run_until_idle(1);
    REQUIRE(answer->has_value());
    return **answer;
  }
  void crash_master() {
    executor.crash();
    executor.open();
  }

  /// Nothing is live, the parts of the cluster agree, and every row that was acknowledged is there.
  void check_end() const {
    executor.run();
    CHECK(executor->inspect().live_procedures() == 0);
    CHECK(executor->inspect().locks().empty());
    CHECK(disorder(cluster).empty());
    check_rows();
  }
  void check_rows() const {
    const std::set<std::string> readable = cluster.readable_rows(table_t().name);
    for (const std::string& row : written_) {
      CAPTURE(row);
      CHECK(readable.contains(row));
    }
    CHECK_FALSE(written_.empty());
  }

  MemoryCluster cluster;
  std::vector<ServerName> servers;
  DeterministicExecutor executor{cluster};

 private:
  int generation_ = 0;
  std::set<std::string> written_;
};

}  // namespace pv2::testing
