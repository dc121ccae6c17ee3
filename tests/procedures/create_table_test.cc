// SPDX-License-Identifier: Apache-2.0
//
// CreateTable on a cluster in memory: what it leaves behind, what it refuses, and how it gets
// through each kind of failure behind the point of no return.

#include <pv2/engine/inspection.h>
#include <pv2/procedures/create_table.h>

#include <algorithm>

#include "table_plots.h"

namespace pv2::testing::create_table_test {
namespace {

CreateTable create(MemoryCluster& cluster, TableDescriptor descriptor = table_t(),
                   std::size_t regions = 3) {
  return CreateTable(cluster.ports(), std::move(descriptor), even_split_keys(regions));
}

/// The directory and the region rows of a table of which an operator has ended the CreateTable.
void leave_regions(MemoryCluster& cluster) {
  CatalogueWrite write{.effect_key = "ended/regions"};
  std::vector<RegionInfo> regions = regions_of(name_t(), even_split_keys(2), 99);
  for (const RegionInfo& region : regions) {
    write.regions.push_back({region, RegionState::kClosed, {}, 0});
  }
  cluster.ports().files.write_layout(table_t(), std::move(regions), "ended/layout",
                                     nobody<Status>());
  cluster.ports().catalogue.write(std::move(write), nobody<Result<Applied>>());
}

}  // namespace

TEST_CASE("CreateTable makes the directory, the rows, and opens every region on a live server") {
  const Delivery delivery = GENERATE(Delivery::kInline, Delivery::kQueued);
  MemoryCluster cluster(delivery);
  cluster.add_server("rs1");
  cluster.add_server("rs2");
  DeterministicExecutor executor(cluster);
  executor.open();

  const auto id = executor.submit(create(cluster));
  REQUIRE(id.ok());
  executor.run();

  const ProcedureResult result = executor.result(*id);
  CHECK(result.state == ProcedureState::kSuccess);
  CHECK(result.result == "default:t");
  const ClusterSnapshot after = cluster.snapshot();
  CHECK(disorder(after).empty());
  REQUIRE(after.tables.size() == 1);
  CHECK(after.tables[0].descriptor == table_t());
  REQUIRE(after.regions.size() == 3);
  for (const RegionRow& row : after.regions) CHECK(row.open_sequence == 1);
  CHECK(after.open.begin()->second.size() == 2);  // three regions over two servers
}

TEST_CASE("a state machine of N steps makes N + 1 records if it does not wait for locks") {
  MemoryCluster cluster;
  cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();

  const auto id = executor.submit(create(cluster, table_t(), 1));
  executor.run();
  REQUIRE(executor.result(*id).state == ProcedureState::kSuccess);

  // CreateTable: 6 steps and its insert. Its one TransitRegionState: 3 steps; its insert is part of
  // its parent's step. That one's OpenRegion: 2 steps, and the report that it waits for.
  CHECK(executor.records() == (6 + 1) + 3 + (2 + 1));
}

TEST_CASE("waiting for an answer of the cluster makes no record") {
  MemoryCluster cluster(Delivery::kQueued);
  cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();

  const auto id = executor.submit(create(cluster, table_t(), 1));
  executor.run();
  REQUIRE(executor.result(*id).state == ProcedureState::kSuccess);

  CHECK(executor.records() == (6 + 1) + 3 + (2 + 1));
}

TEST_CASE("CreateTable refuses what it cannot make, and changes nothing") {
  MemoryCluster cluster;
  cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();
  struct Refused {
    TableDescriptor descriptor;
    std::vector<std::string> split_keys;
    std::string why;
  };
  const Refused refused = GENERATE(values<Refused>({
      {{{"default", ""}, {"f1"}}, {}, "table '' is not a legal name"},
      {{{"default", "../t"}, {"f1"}}, {}, "table '../t' is not a legal name"},
      {{{"default", ".t"}, {"f1"}}, {}, "not a legal name"},
      {{{"a:b", "t"}, {"f1"}}, {}, "namespace 'a:b' is not a legal name"},
      {{{"default", std::string(201, 'x')}, {"f1"}}, {}, "not a legal name"},
      {{{"default", "t"}, {}}, {}, "default:t has no column family"},
      {{{"default", "t"}, {"f/1"}}, {}, "column family 'f/1' is not a legal name"},
      {{{"default", "t"}, {"f1", "f2", "f1"}}, {}, "names column family 'f1' twice"},
      {{{"default", "t"}, {"f1"}}, {"k", "k"}, "must not be empty and not repeat"},
      {{{"default", "t"}, {"f1"}}, {""}, "must not be empty and not repeat"},
  }));

  const auto id =
      executor.submit(CreateTable(cluster.ports(), refused.descriptor, refused.split_keys));
  REQUIRE(id.ok());
  executor.run();

  const ProcedureResult result = executor.result(*id);
  CHECK(result.state == ProcedureState::kRolledBack);
  CHECK(result.status.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(result.status.message()), ContainsSubstring(refused.why));
  CHECK(cluster.snapshot().effects.empty());
  CHECK(executor->inspect().locks().empty());
}

TEST_CASE("the second of two CreateTables of one table fails because the table exists") {
  MemoryCluster cluster(Delivery::kQueued);
  cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();

  const auto first = executor.submit(create(cluster));
  const auto second = executor.submit(create(cluster));
  executor.run();

  CHECK(executor.result(*first).state == ProcedureState::kSuccess);
  CHECK(executor.result(*second).state == ProcedureState::kRolledBack);
  CHECK(executor.result(*second).status.code() == StatusCode::kAlreadyExists);
  CHECK(disorder(cluster).empty());
}

TEST_CASE("a call that fails for a while is asked again until it answers, and happens once") {
  const ClusterCall call =
      GENERATE(ClusterCall::kReadTable, ClusterCall::kWriteLayout, ClusterCall::kWrite,
               ClusterCall::kReadRegion, ClusterCall::kLiveServers, ClusterCall::kRefresh);
  const ClusterFault fault =
      GENERATE(ClusterFault::kFail, ClusterFault::kLoseRequest, ClusterFault::kLoseReply);
  const unsigned times = GENERATE(1u, 7u);
  CAPTURE(to_string(call), static_cast<int>(fault), times);
  MemoryCluster cluster;
  cluster.add_server("rs1");
  cluster.add_server("rs2");
  cluster.fail_next(call, fault, times);
  DeterministicExecutor executor(cluster);
  executor.open();

  const auto id = executor.submit(create(cluster));
  executor.run();

  CHECK(executor.result(*id).state == ProcedureState::kSuccess);
  CHECK(disorder(cluster).empty());
}

TEST_CASE("the step in which CreateTable decides on its regions cannot be skipped") {
  MemoryCluster cluster;
  cluster.add_server("rs1");
  cluster.fail_next(ClusterCall::kReadTable, ClusterFault::kFail, 1);
  DeterministicExecutor executor(cluster);
  executor.max_attempts = 1;
  executor.open();
  const auto id = executor.submit(create(cluster));
  executor.run();
  REQUIRE(executor->inspect().describe(*id)->parked);

  const RepairNote note{.who = "test", .why = "it is stuck"};
  const Status refusal = executor->operate().skip_step(*id, note);
  CHECK(refusal.code() == StatusCode::kFailedPrecondition);
  CHECK(refusal.message().find("PRE_OPERATION, which must run") != std::string_view::npos);
  std::optional<Status> retried;
  executor->operate().order(*id, RepairVerb::kRetryNow, note,
                            [&](const Status& status) { retried = status; });
  executor.run();
  CHECK(retried == Status());
  CHECK(executor.result(*id).state == ProcedureState::kSuccess);
  CHECK(disorder(cluster).empty());
}

TEST_CASE("a layout that was half written is completed") {
  MemoryCluster cluster;
  cluster.add_server("rs1");
  cluster.fail_next(ClusterCall::kWriteLayout, ClusterFault::kHalf, 2);
  DeterministicExecutor executor(cluster);
  executor.open();

  const auto id = executor.submit(create(cluster, table_t(), 5));
  executor.run();

  CHECK(executor.result(*id).state == ProcedureState::kSuccess);
  CHECK(cluster.calls(ClusterCall::kWriteLayout) == 3);
  CHECK(disorder(cluster).empty());
}

TEST_CASE("the same nonce names the same CreateTable, even after a restart") {
  MemoryCluster cluster;
  cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();
  const Nonce nonce{7, 42};
  const auto id = executor.submit(create(cluster), nonce);
  executor.run();
  executor.crash();

  executor.open();
  const auto again = executor.submit(create(cluster), nonce);
  executor.run();

  CHECK(*again == *id);
  CHECK(executor.result(*again).state == ProcedureState::kSuccess);
  CHECK(disorder(cluster).empty());
}

TEST_CASE("after a restart the regions have the ids that were decided before") {
  MemoryCluster cluster;
  cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();
  cluster.fail_next(ClusterCall::kWriteLayout, ClusterFault::kHalf);
  const auto id = executor.submit(create(cluster));
  executor.settle();
  REQUIRE(executor->inspect().describe(*id)->step_name == "WRITE_FS_LAYOUT");
  const std::vector<std::string> half = cluster.snapshot().directories.at(0).regions;

  executor.crash();
  executor.open();
  executor.run();

  const std::vector<std::string> whole = cluster.snapshot().directories.at(0).regions;
  CHECK(whole.size() == 3);
  for (const std::string& region : half) {
    CHECK(std::ranges::find(whole, region) != whole.end());
  }
  CHECK(disorder(cluster).empty());
}

TEST_CASE("CreateTable makes the same table, whichever call fails") {
  const ProcedurePlot creating{.subject = create_t(), .check = [](auto& cluster, auto& findings) {
                                 expect_state(cluster, findings, TableState::kEnabled);
                               }};
  CHECK(check_faults(creating) > 100);
}

TEST_CASE("CreateTable replaces the regions that an ended one has left, whatever fails") {
  const ProcedurePlot creating{
      .subject = create_t(), .arrange = leave_regions, .check = [](auto& cluster, auto& findings) {
        expect_state(cluster, findings, TableState::kEnabled);
        findings.expect(cluster.snapshot().regions.size() == 3, "it has its own regions alone");
      }};
  CHECK(check_faults(creating) > 100);
  check_crashes(creating);
}

TEST_CASE("an abort of a CreateTable that has begun is refused") {
  CHECK(check_aborts({.subject = create_t()}) >= 5);
}

TEST_CASE("CreateTable ends the same whichever store write the machine crashes at") {
  check_crashes({.subject = create_t()});
  check_crashes_in_rollback({.subject = create_t()});
}

TEST_CASE("a table that the catalogue could not take is refused before anything is made") {
  MemoryCluster cluster;
  cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();
  const auto refusal = [&](TableDescriptor descriptor, std::vector<std::string> keys) {
    const auto id =
        executor.submit(CreateTable(cluster.ports(), std::move(descriptor), std::move(keys)));
    REQUIRE(id.status().to_string() == "OK");
    executor.settle();
    CHECK(executor.result(*id).status.code() == StatusCode::kInvalidArgument);
    return std::string(executor.result(*id).status.message());
  };
  std::vector<std::string> families;
  for (int i = 0; i < 1025; ++i) families.push_back("f" + std::to_string(i));
  std::vector<std::string> long_keys;
  for (int i = 1000; i < 2100; ++i) long_keys.push_back(std::to_string(i) + std::string(4000, 'k'));

  CHECK_THAT(refusal(table_t(), {std::string(4097, 'k')}), ContainsSubstring("give a shorter key"));
  CHECK_THAT(refusal(table_t(), std::move(long_keys)), ContainsSubstring("fewer or shorter"));
  CHECK_THAT(refusal({{"default", "t"}, std::move(families)}, {}), ContainsSubstring("use fewer"));
  CHECK_THAT(refusal({{"default", "t"}, {std::string(65, 'f')}}, {}),
             ContainsSubstring("use a shorter name"));

  CHECK(cluster.snapshot().directories.empty());
  CHECK(disorder(cluster).empty());
}

TEST_CASE("a table with more regions than one record can start children for is made in rounds") {
  MemoryCluster cluster;
  cluster.add_server("rs1");
  DeterministicExecutor executor(cluster);
  executor.open();
  const auto id = executor.submit(CreateTable(cluster.ports(), table_t(), even_split_keys(5000)));
  std::size_t most = 0;
  for (int turn = 0; turn < 200'000 && executor->inspect().live_procedures() > 0; ++turn) {
    if (executor->run_until_idle(1000) == 0) (void)cluster.deliver_reports(*executor);
    most = std::max(most, executor->inspect().live_procedures());
  }
  // The parent, 4096 children, and one of each of these.
  CHECK(most <= 1 + 2 * 4096);

  CHECK(executor.result(*id).status.to_string() == "OK");
  CHECK(disorder(cluster).empty());
}

}  // namespace pv2::testing::create_table_test
