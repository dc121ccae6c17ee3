// SPDX-License-Identifier: Apache-2.0
//
// A master that was replaced and does not know it takes a server's report. It cannot make the
// report durable, so it acknowledges nothing, and the server tells the next master.

#include <pv2/procedures/create_table.h>

#include "deterministic_executor.h"

namespace pv2::testing::deposed_master_test {

TEST_CASE("a report that a deposed master is given reaches its successor") {
  const Delivery delivery = GENERATE(Delivery::kInline, Delivery::kQueued);
  MemoryCluster cluster(delivery);
  const ServerName server = cluster.add_server("rs1");
  const auto disk = std::make_shared<MemoryDisk>();
  const auto same_disk = [disk] { return std::make_unique<MemoryProcedureStore>(disk); };
  DeterministicExecutor deposed(cluster, same_disk);
  DeterministicExecutor successor(cluster, same_disk);
  deposed.open();
  const auto id = deposed.submit(CreateTable(cluster.ports(), table_t()));
  for (int turn = 0; turn < 1000 && cluster.unsent_reports(*deposed) == 0; ++turn) {
    if (deposed->run_until_idle(1) == 0) (void)cluster.deliver_one();
  }
  REQUIRE(cluster.unsent_reports(*deposed) == 1);

  successor.open();
  CHECK(cluster.deliver_reports(*deposed) == 1);
  deposed->run_until_idle();
  CHECK(deposed->health().code() == StatusCode::kFenced);
  CHECK_FALSE(cluster.write_row(table_t().name, "a"));  // not before the report is acknowledged
  successor.run();

  CHECK(successor.result(*id).status.to_string() == "OK");
  CHECK(cluster.snapshot().open.at(server).size() == 1);
  CHECK(cluster.write_row(table_t().name, "a"));
  CHECK(disorder(cluster).empty());  // the region was opened once
}

}  // namespace pv2::testing::deposed_master_test
