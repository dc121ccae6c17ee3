// SPDX-License-Identifier: Apache-2.0
//
// CreateTable in one process, on a cluster in memory where some things go wrong: the layout is only
// half written, a server refuses, the answer of another server is lost. Prints what the procedure
// went through and the state at the end.

#include <pv2/procedures/create_table.h>
#include <pv2/procedures/memory_cluster.h>
#include <pv2/pv2.h>

#include <chrono>
#include <iostream>

using namespace std::chrono_literals;

int main() {
  pv2::MemoryCluster cluster;
  cluster.add_server("rs1");
  cluster.add_server("rs2");
  cluster.fail_next(pv2::ClusterCall::kWriteLayout, pv2::ClusterFault::kHalf);
  cluster.fail_next(pv2::ClusterCall::kOpenRegion, pv2::ClusterFault::kRefuse);
  cluster.fail_next(pv2::ClusterCall::kOpenRegion, pv2::ClusterFault::kLoseReply);

  pv2::ProcedureRegistry types;
  pv2::add_cluster_procedures(types, cluster.ports());
  auto executor = pv2::ProcedureExecutor::open(
      {.store = pv2::noop(), .registry = types, .retry = {.base = 10ms, .cap = 100ms}});
  if (!executor.ok()) {
    std::cerr << executor.status().to_string() << '\n';
    return 1;
  }
  (*executor)->start();

  const pv2::TableDescriptor table{.name = {"default", "t"}, .families = {"f1"}};
  const auto submitted =
      (*executor)->submit(pv2::CreateTable(cluster.ports(), table, pv2::even_split_keys(4)));
  if (!submitted.ok()) {
    std::cerr << submitted.status().to_string() << '\n';
    return 1;
  }
  const auto result = (*executor)->wait(submitted->id);
  std::cout << "procedure " << submitted->id.value << ": "
            << (result.ok() ? to_string(result->state) : result.status().to_string()) << '\n';

  const pv2::ClusterSnapshot world = cluster.snapshot();
  for (const pv2::RegionRow& row : world.regions) {
    std::cout << "region " << row.region.id << " is " << to_string(row.state) << " on "
              << to_string(row.server) << '\n';
  }
  const auto disorder = pv2::find_disorder(world);
  for (const std::string& finding : disorder) std::cout << "WRONG: " << finding << '\n';
  return disorder.empty() ? 0 : 1;
}
