// SPDX-License-Identifier: Apache-2.0
//
// The server of the catalogue dies. Its ServerCrash needs the locks of the catalogue's region, so
// nobody may keep one of them while it waits for the catalogue.

#include <pv2/engine/inspection.h>
#include <pv2/procedures/create_namespace.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/delete_namespace.h>
#include <pv2/procedures/delete_table.h>
#include <pv2/procedures/disable_table.h>
#include <pv2/procedures/enable_table.h>
#include <pv2/procedures/init_meta.h>
#include <pv2/procedures/lock_procedure.h>
#include <pv2/procedures/merge_table_regions.h>
#include <pv2/procedures/modify_namespace.h>
#include <pv2/procedures/modify_table.h>
#include <pv2/procedures/server_crash.h>
#include <pv2/procedures/split_table_region.h>
#include <pv2/procedures/transit_region_state.h>
#include <pv2/procedures/truncate_table.h>

#include "procedure_plot.h"

namespace pv2::testing::catalogue_loss_test {
namespace {

RegionRow meta_row(const MemoryCluster& cluster) {
  for (const RegionRow& row : cluster.snapshot().regions) {
    if (is_meta(row.region.table)) return row;
  }
  return {};
}

/// The catalogue's server dies, the operation begins, and only then the death is noticed.
void check_operation(const PlotOperation& subject, StatusCode expected) {
  CAPTURE(subject.type);
  MemoryCluster cluster(Delivery::kQueued);
  const ServerName host = cluster.add_server("rs1");
  cluster.add_server("rs2");
  cluster.host_catalogue_on(host);
  DeterministicExecutor executor(cluster);
  executor.open();

  cluster.kill_server(host);
  const auto id = subject.submit(executor, cluster);
  REQUIRE(id.ok());
  executor.settle();
  const auto crash = executor.submit(ServerCrash(cluster.ports(), host), crash_nonce(host));
  executor.run();

  CHECK(executor->inspect().live_procedures() == 0);
  CHECK(meta_row(cluster).state == RegionState::kOpen);
  CHECK(executor.result(*crash).status.to_string() == "OK");
  CHECK(executor.result(*id).status.code() == expected);
  CHECK(disorder(cluster).empty());
}

}  // namespace

TEST_CASE("no operation on the system's own objects keeps the catalogue from coming back") {
  const TableDescriptor meta{meta_table(), {"f"}};
  const auto check = [](auto make, StatusCode expected) {
    check_operation(operation(make), expected);
  };
  const std::string system(kSystemNamespace);
  using C = MemoryCluster;
  constexpr StatusCode kRefused = StatusCode::kFailedPrecondition;

  check([=](C& c) { return CreateNamespace(c.ports(), {system}); }, StatusCode::kAlreadyExists);
  check([=](C& c) { return ModifyNamespace(c.ports(), {system, 3}); }, kRefused);
  check([=](C& c) { return DeleteNamespace(c.ports(), system); }, kRefused);
  check([=](C& c) { return CreateTable(c.ports(), meta); }, kRefused);
  check([=](C& c) { return DeleteTable(c.ports(), meta.name); }, kRefused);
  check([=](C& c) { return EnableTable(c.ports(), meta.name); }, kRefused);
  check([=](C& c) { return DisableTable(c.ports(), meta.name); }, kRefused);
  check([=](C& c) { return ModifyTable(c.ports(), meta); }, kRefused);
  check([=](C& c) { return TruncateTable(c.ports(), meta.name, TruncateSplits::kDrop); }, kRefused);
  check([=](C& c) { return SplitTableRegion(c.ports(), meta_region(), "k"); }, kRefused);
  check(
      [=](C& c) {
        RegionInfo first = meta_region();
        RegionInfo second = meta_region();
        first.end_key = second.start_key = "k";
        second.id = "0000000000000002";
        return MergeTableRegions(c.ports(), {first, second});
      },
      kRefused);
  check([=](C& c) { return TransitRegionState::unassign(c.ports(), meta_region()); }, kRefused);
  check([=](C& c) { return InitMeta(c.ports()); }, kRefused);
  const auto locks = [](LockOrder order) { return [=](C&) { return LockProcedure(order); }; };
  check(locks({.name_space = system}), kRefused);
  check(locks({.name_space = system, .table = "meta"}), kRefused);
  check(locks({.name_space = system, .table = "meta", .mode = LockMode::kShared}), kRefused);
  check(locks({.name_space = system, .table = "meta", .regions = {meta_region().id}}), kRefused);
}

TEST_CASE("the region of the catalogue can be assigned and reopened while its server is dead") {
  check_operation(operation([](MemoryCluster& cluster) {
                    return TransitRegionState::assign(cluster.ports(), meta_region());
                  }),
                  StatusCode::kOk);
  check_operation(operation([](MemoryCluster& cluster) {
                    return TransitRegionState::reopen(cluster.ports(), meta_region());
                  }),
                  StatusCode::kOk);
}

TEST_CASE("two hundred procedures that wait for the catalogue do not keep it from coming back") {
  MemoryCluster cluster(Delivery::kQueued);
  const ServerName host = cluster.add_server("rs1");
  cluster.add_server("rs2");
  cluster.host_catalogue_on(host);
  DeterministicExecutor executor(cluster);
  executor.open();

  cluster.kill_server(host);
  std::vector<ProcedureId> ids;
  for (int i = 0; i < 200; ++i) {
    const TableName table{"default", "t" + std::to_string(i)};
    ids.push_back(*executor.submit(CreateTable(cluster.ports(), {table, {"f"}})));
  }
  // One thread runs all steps, so a step that blocked would block this test.
  executor.settle();
  CHECK(executor->inspect().live_procedures() == ids.size());
  (void)executor.submit(ServerCrash(cluster.ports(), host), crash_nonce(host));
  executor.run();

  for (const ProcedureId id : ids) CHECK(executor.result(id).status.to_string() == "OK");
  CHECK(disorder(cluster).empty());
}

TEST_CASE("InitMeta ends whenever the server that gets the catalogue dies") {
  std::size_t deaths = 0;
  for (std::size_t turns = 0; turns < 40; ++turns) {
    CAPTURE(turns);
    MemoryCluster cluster(Delivery::kQueued, FirstState::kNothing);
    for (const char* host : {"rs1", "rs2", "rs3"}) cluster.add_server(host);
    DeterministicExecutor executor(cluster);
    executor.open();
    const auto id = executor.submit(InitMeta(cluster.ports()));
    for (std::size_t turn = 0; turn < turns; ++turn) {
      if (executor->run_until_idle(1) > 0 || cluster.deliver_one()) continue;
      (void)cluster.deliver_reports(*executor);
    }

    if (const ServerName host = meta_row(cluster).server; !host.empty()) {
      ++deaths;
      cluster.kill_server(host);
      (void)executor.submit(ServerCrash(cluster.ports(), host), crash_nonce(host));
    }
    executor.run();

    CHECK(executor->inspect().live_procedures() == 0);
    CHECK(executor.result(*id).status.to_string() == "OK");
    CHECK(cluster.snapshot().namespaces.size() == 2);
    CHECK(disorder(cluster).empty());
  }
  CHECK(deaths > 5);
}

}  // namespace pv2::testing::catalogue_loss_test
