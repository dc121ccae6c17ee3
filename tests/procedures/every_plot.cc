// SPDX-License-Identifier: Apache-2.0
//
// The plots. They say what there is before and what is submitted; what comes out has to be the same
// with every crash, and in order. What else has to come out is in the tests of each procedure.

#include "every_plot.h"

#include <pv2/procedures/add_peer.h>
#include <pv2/procedures/create_namespace.h>
#include <pv2/procedures/delete_namespace.h>
#include <pv2/procedures/disable_peer.h>
#include <pv2/procedures/enable_peer.h>
#include <pv2/procedures/init_meta.h>
#include <pv2/procedures/lock_procedure.h>
#include <pv2/procedures/merge_table_regions.h>
#include <pv2/procedures/modify_namespace.h>
#include <pv2/procedures/remove_peer.h>
#include <pv2/procedures/split_table_region.h>
#include <pv2/procedures/transit_region_state.h>
#include <pv2/procedures/update_peer_config.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "table_plots.h"

namespace pv2::testing {
namespace {

// The first server of every plot.
const ServerName kFirst{"rs1", 101};
const PeerConfig kConfig{"/clusters/b", {}};

/// The regions that the table was made with, in order: their rows stay. A region that came out of a
/// split or a merge has other borders.
std::vector<RegionInfo> first_regions(MemoryCluster& cluster, std::size_t count) {
  std::vector<std::string> borders = even_split_keys(count);
  borders.insert(borders.begin(), "");
  borders.emplace_back();
  std::vector<RegionInfo> regions;
  for (const RegionRow& row : cluster.snapshot().regions) {
    const auto start = std::ranges::find(borders, row.region.start_key);
    if (row.region.table != name_t() || start == borders.end()) continue;
    if (*std::next(start) == row.region.end_key) regions.push_back(row.region);
  }
  std::ranges::sort(regions, {}, &RegionInfo::start_key);
  return regions;
}

/// An operation on the only region of the table.
template <class Make>
PlotOperation on_region(Make make) {
  return operation([=](MemoryCluster& cluster) {
    return make(cluster.ports(), first_regions(cluster, 1).front());
  });
}
template <class Make>
PlotOperation on_ports(Make make) {
  return operation([=](MemoryCluster& cluster) { return make(cluster.ports()); });
}

PlotOperation add_peer() {
  return on_ports([](ClusterPorts& ports) { return AddPeer(ports, PeerRow{"p", kConfig, true}); });
}
PlotOperation disable_peer() {
  return on_ports([](ClusterPorts& ports) { return DisablePeer(ports, "p"); });
}
PlotOperation create_namespace() {
  return on_ports([](ClusterPorts& ports) { return CreateNamespace(ports, {"n"}); });
}
PlotOperation unassign() {
  return on_region([](ClusterPorts& ports, const RegionInfo& region) {
    return TransitRegionState::unassign(ports, region);
  });
}

}  // namespace

std::vector<NamedPlot> plots_of_tables() {
  const auto create = create_t(2);
  return {
      {"CreateTable", {.subject = create}},
      {"CreateTable::of_system", {.subject = on_ports([](ClusterPorts& ports) {
                                    return CreateTable::of_system(ports, {{"system", "s"}, {"f"}});
                                  })}},
      {"EnableTable", {.subject = enable_t(), .before = {create, disable_t()}}},
      {"DisableTable", {.subject = disable_t(), .before = {create}}},
      {"ModifyTable", {.subject = modify_t(), .before = {create}}},
      {"TruncateTable",
       {.subject = truncate_t(TruncateSplits::kPreserve), .before = {create, disable_t()}}},
      {"DeleteTable", {.subject = delete_t(), .before = {create, disable_t()}}},
  };
}

std::vector<NamedPlot> plots_of_namespaces() {
  return {
      {"CreateNamespace", {.subject = create_namespace()}},
      {"ModifyNamespace",
       {.subject = on_ports([](ClusterPorts& ports) {
          return ModifyNamespace(ports, {"n", 7});
        }),
        .before = {create_namespace()}}},
      {"DeleteNamespace",
       {.subject = on_ports([](ClusterPorts& ports) { return DeleteNamespace(ports, "n"); }),
        .before = {create_namespace()}}},
      {"Lock", {.subject = operation([](MemoryCluster&) {
                  return LockProcedure({.name_space = "default", .table = "t"});
                })}},
  };
}

std::vector<NamedPlot> plots_of_peers() {
  return {
      {"AddPeer", {.subject = add_peer()}},
      {"RemovePeer",
       {.subject = on_ports([](ClusterPorts& ports) { return RemovePeer(ports, "p"); }),
        .before = {add_peer()}}},
      {"DisablePeer", {.subject = disable_peer(), .before = {add_peer()}}},
      {"EnablePeer",
       {.subject = on_ports([](ClusterPorts& ports) { return EnablePeer(ports, "p"); }),
        .before = {add_peer(), disable_peer()}}},
      {"UpdatePeerConfig",
       {.subject = on_ports([](ClusterPorts& ports) {
          return UpdatePeerConfig(ports, "p", {kConfig.cluster, {name_t()}});
        }),
        .before = {add_peer()}}},
  };
}

std::vector<NamedPlot> plots_of_regions() {
  const auto create = create_t(1);
  const auto transit = [](auto make) {
    return on_region(
        [make](ClusterPorts& ports, const RegionInfo& region) { return make(ports, region); });
  };
  return {
      {"ASSIGN",
       {.subject = transit([](ClusterPorts& ports, const RegionInfo& region) {
          return TransitRegionState::assign(ports, region);
        }),
        .before = {create, unassign()}}},
      // A region of an enabled table stays closed.
      {"UNASSIGN", {.subject = unassign(), .before = {create}, .ends_in_order = false}},
      {"MOVE",
       {.subject = transit([](ClusterPorts& ports, const RegionInfo& region) {
          return TransitRegionState::move(ports, region, {"rs2", 102});
        }),
        .before = {create}}},
      {"REOPEN",
       {.subject = transit([](ClusterPorts& ports, const RegionInfo& region) {
          return TransitRegionState::reopen(ports, region);
        }),
        .before = {create}}},
      {"SplitTableRegion",
       {.subject = transit([](ClusterPorts& ports, const RegionInfo& region) {
          return SplitTableRegion(ports, region, "m");
        }),
        .before = {create}}},
      {"MergeTableRegions",
       {.subject = operation([](MemoryCluster& cluster) {
          return MergeTableRegions(cluster.ports(), first_regions(cluster, 2));
        }),
        .before = {create_t(2)}}},
  };
}

std::vector<NamedPlot> plots_of_servers() {
  return {
      // It has regions, the catalogue, and a queue for a peer.
      {"ServerCrash",
       {.subject = on_ports([](ClusterPorts& ports) { return ServerCrash(ports, kFirst); }),
        .before = {create_t(2), add_peer()},
        .arrange =
            [](MemoryCluster& cluster) {
              cluster.host_catalogue_on(kFirst);
              for (const char* row : {"a", "\xC0"}) (void)cluster.write_row(name_t(), row);
              cluster.kill_server(kFirst);
            },
        .check =
            [](MemoryCluster& cluster, Findings& findings) {
              findings.expect(cluster.readable_rows(name_t()).size() == 2, "every row is there");
            }}},
      {"InitMeta",
       {.subject = on_ports([](ClusterPorts& ports) { return InitMeta(ports); }),
        .first = FirstState::kNothing}},
  };
}

std::vector<NamedPlot> every_plot() {
  std::vector<NamedPlot> all;
  for (std::vector<NamedPlot> plots : {plots_of_tables(), plots_of_namespaces(), plots_of_peers(),
                                       plots_of_regions(), plots_of_servers()}) {
    std::ranges::move(plots, std::back_inserter(all));
  }
  return all;
}

}  // namespace pv2::testing
