// SPDX-License-Identifier: Apache-2.0
//
// ServerCrash in one process: a table of six regions on three servers, one of which dies; two
// observers report the crash, and the regions move once. Prints where the regions are before and
// after.

#include <pv2/procedures/create_table.h>
#include <pv2/procedures/memory_cluster.h>
#include <pv2/procedures/server_crash.h>
#include <pv2/pv2.h>

#include <iostream>

namespace {

void print(const char* when, const pv2::MemoryCluster& cluster) {
  std::cout << when << '\n';
  for (const pv2::RegionRow& row : cluster.snapshot().regions) {
    std::cout << "  " << row.region.id << ' ' << to_string(row.state) << " on "
              << to_string(row.server) << ", opening " << row.open_sequence << '\n';
  }
}

}  // namespace

int main() {
  pv2::MemoryCluster cluster;
  const pv2::ServerName dying = cluster.add_server("rs1");
  cluster.add_server("rs2");
  cluster.add_server("rs3");

  pv2::ProcedureRegistry types;
  pv2::add_cluster_procedures(types, cluster.ports());
  auto executor = pv2::ProcedureExecutor::open({.store = pv2::noop(), .registry = types});
  if (!executor.ok()) {
    std::cerr << executor.status().to_string() << '\n';
    return 1;
  }
  (*executor)->start();

  const pv2::TableDescriptor table{.name = {"default", "t"}, .families = {"f1"}};
  const auto create =
      (*executor)->submit(pv2::CreateTable(cluster.ports(), table, pv2::even_split_keys(6)));
  if (!create.ok() || !(*executor)->wait(create->id).ok()) return 1;
  print("before:", cluster);

  cluster.kill_server(dying);
  const auto first = (*executor)->submit(pv2::ServerCrash(cluster.ports(), dying),
                                         {.nonce = pv2::crash_nonce(dying)});
  const auto second = (*executor)->submit(pv2::ServerCrash(cluster.ports(), dying),
                                          {.nonce = pv2::crash_nonce(dying)});
  if (!first.ok() || !second.ok() || !(*executor)->wait(first->id).ok()) return 1;
  std::cout << "two reports, procedures " << first->id.value << " and " << second->id.value << '\n';
  print("after:", cluster);

  const auto disorder = pv2::find_disorder(cluster.snapshot());
  for (const std::string& finding : disorder) std::cout << "WRONG: " << finding << '\n';
  return disorder.empty() && first->id == second->id ? 0 : 1;
}
