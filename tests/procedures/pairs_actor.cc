// SPDX-License-Identifier: Apache-2.0
//
// The list of actors, and what each of them submits.

#include "pairs_actor.h"

#include <pv2/procedures/add_peer.h>
#include <pv2/procedures/create_namespace.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/delete_namespace.h>
#include <pv2/procedures/delete_table.h>
#include <pv2/procedures/disable_peer.h>
#include <pv2/procedures/disable_table.h>
#include <pv2/procedures/enable_peer.h>
#include <pv2/procedures/enable_table.h>
#include <pv2/procedures/init_meta.h>
#include <pv2/procedures/lock_procedure.h>
#include <pv2/procedures/merge_table_regions.h>
#include <pv2/procedures/modify_namespace.h>
#include <pv2/procedures/modify_table.h>
#include <pv2/procedures/remove_peer.h>
#include <pv2/procedures/split_table_region.h>
#include <pv2/procedures/transit_region_state.h>
#include <pv2/procedures/truncate_table.h>
#include <pv2/procedures/update_peer_config.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace pv2::testing {
namespace {

constexpr std::array kActors{
    ActorKind{Actor::kCreateTable, "cluster.CreateTable", "make a table"},
    ActorKind{Actor::kDeleteTable, "cluster.DeleteTable", "delete the table"},
    ActorKind{Actor::kEnableTable, "cluster.EnableTable", "enable the table"},
    ActorKind{Actor::kDisableTable, "cluster.DisableTable", "disable the table"},
    ActorKind{Actor::kModifyTable, "cluster.ModifyTable", "modify the table"},
    ActorKind{Actor::kTruncateTable, "cluster.TruncateTable", "truncate the table"},
    ActorKind{Actor::kCreateNamespace, "cluster.CreateNamespace", "make a namespace"},
    ActorKind{Actor::kModifyNamespace, "cluster.ModifyNamespace", "modify a namespace"},
    ActorKind{Actor::kDeleteNamespace, "cluster.DeleteNamespace", "delete a namespace"},
    ActorKind{Actor::kAddPeer, "cluster.AddPeer", "add the peer"},
    ActorKind{Actor::kRemovePeer, "cluster.RemovePeer", "remove the peer"},
    ActorKind{Actor::kEnablePeer, "cluster.EnablePeer", "enable the peer"},
    ActorKind{Actor::kDisablePeer, "cluster.DisablePeer", "disable the peer"},
    ActorKind{Actor::kUpdatePeerConfig, "cluster.UpdatePeerConfig", "update the peer"},
    ActorKind{Actor::kLock, "cluster.Lock", "lock something"},
    ActorKind{Actor::kAssign, "cluster.TransitRegionState", "assign a region"},
    ActorKind{Actor::kUnassign, "cluster.TransitRegionState", "unassign a region"},
    ActorKind{Actor::kMove, "cluster.TransitRegionState", "move a region"},
    ActorKind{Actor::kReopen, "cluster.TransitRegionState", "reopen a region"},
    ActorKind{Actor::kSplit, "cluster.SplitTableRegion", "split a region"},
    ActorKind{Actor::kMerge, "cluster.MergeTableRegions", "merge regions"},
    ActorKind{Actor::kServerCrash, "cluster.ServerCrash", "a server crashes"},
    ActorKind{Actor::kInitMeta, "cluster.InitMeta", "make the catalogue"},
};

constexpr std::array kChildren{
    ChildKind{"cluster.CloseTableRegions", Actor::kDisableTable},
    ChildKind{"cluster.ReopenTableRegions", Actor::kModifyTable},
    ChildKind{"cluster.OpenRegion", Actor::kAssign},
    ChildKind{"cluster.CloseRegion", Actor::kUnassign},
    ChildKind{"cluster.SplitLog", Actor::kServerCrash},
    ChildKind{"cluster.SplitLogRemote", Actor::kServerCrash},
    ChildKind{"cluster.AssignServerRegions", Actor::kServerCrash},
    ChildKind{"cluster.ClaimQueues", Actor::kServerCrash},
    ChildKind{"cluster.RefreshPeer", Actor::kAddPeer},
};

/// Sends what `make` makes, the same every time.
template <class Make>
Send sends(Make make) {
  return
      [make](KeyedClient& client, ProcedureExecutor& executor) { client.submit(executor, make()); };
}

/// The regions of the table that cover its keys, in order.
std::vector<RegionRow> regions(MemoryCluster& cluster) {
  std::vector<RegionRow> found;
  for (const RegionRow& row : cluster.snapshot().regions) {
    if (row.region.table == stage_table() && row.state != RegionState::kSplit) found.push_back(row);
  }
  std::ranges::sort(found, {}, [](const RegionRow& row) { return row.region.start_key; });
  return found;
}

std::string key_inside(const RegionInfo& region) {
  std::string key = region.start_key + 'm';
  if (!region.end_key.empty() && key >= region.end_key) key.back() = '\x01';
  return key;
}

std::vector<RegionInfo> neighbours(const std::vector<RegionRow>& all, std::uint64_t choice) {
  const std::size_t first = choice % (all.size() - 1);
  const std::size_t count = 2 + (choice >> 8) % (all.size() - first - 1);
  std::vector<RegionInfo> chosen;
  for (std::size_t i = first; i < first + count; ++i) chosen.push_back(all[i].region);
  return chosen;
}

std::optional<Send> choose_region_act(Actor actor, MemoryCluster& cluster,
                                      const std::vector<ServerName>& servers,
                                      std::uint64_t choice) {
  ClusterPorts& ports = cluster.ports();
  const std::vector<RegionRow> all = regions(cluster);
  if (all.empty()) return std::nullopt;
  RegionInfo region = all[choice % all.size()].region;
  switch (actor) {
    case Actor::kAssign: {
      // What was left closed, if anything was.
      const auto closed = std::ranges::find(all, RegionState::kClosed, &RegionRow::state);
      if (closed != all.end()) region = closed->region;
      return sends([=, &ports] { return TransitRegionState::assign(ports, region); });
    }
    case Actor::kUnassign:
      return sends([=, &ports] { return TransitRegionState::unassign(ports, region); });
    case Actor::kMove: {
      const ServerName target = servers[(choice >> 8) % servers.size()];
      return sends([=, &ports] { return TransitRegionState::move(ports, region, target); });
    }
    case Actor::kReopen:
      return sends([=, &ports] { return TransitRegionState::reopen(ports, region); });
    case Actor::kSplit:
      return sends([=, &ports] { return SplitTableRegion(ports, region, key_inside(region)); });
    case Actor::kMerge:
      if (all.size() < 2) return std::nullopt;
      return sends([&ports, parents = neighbours(all, choice)] {
        return MergeTableRegions(ports, parents);
      });
    default:
      return std::nullopt;
  }
}

Send choose_lock(MemoryCluster& cluster, std::uint64_t choice) {
  LockOrder order{.name_space = "n", .description = "for a test"};
  const std::vector<RegionRow> all = regions(cluster);
  switch (choice % 4) {
    case 0:
      break;
    case 1:
      order.table = "t";
      break;
    case 2:
      order.table = "t";
      order.mode = LockMode::kShared;
      break;
    default:
      order.table = "t";
      for (const RegionRow& row : all) order.regions.push_back(row.region.id);
      break;
  }
  return sends([order] { return LockProcedure(order); });
}

}  // namespace

std::span<const ActorKind> all_actors() { return kActors; }
std::span<const ChildKind> all_children() { return kChildren; }

std::string_view words_of(Actor actor) {
  return std::ranges::find(kActors, actor, &ActorKind::actor)->words;
}

const std::vector<ActorPair>& all_pairs() {
  static const std::vector<ActorPair> pairs = [] {
    std::vector<ActorPair> made;
    for (std::size_t first = 0; first < kActors.size(); ++first) {
      for (std::size_t second = first; second < kActors.size(); ++second) {
        made.push_back({kActors[first].actor, kActors[second].actor});
      }
    }
    return made;
  }();
  return pairs;
}

TableName stage_table() { return {"n", "t"}; }

std::optional<Send> choose_act(Actor actor, MemoryCluster& cluster,
                               const std::vector<ServerName>& servers, std::uint64_t choice) {
  ClusterPorts& ports = cluster.ports();
  const TableName table = stage_table();
  const std::string name_space = (choice >> 16) % 2 == 0 ? "n" : "m";
  switch (actor) {
    case Actor::kCreateTable: {
      const std::array<TableName, 4> tables{TableName{"n", "u"}, {"n", "v"}, {"m", "u"}, table};
      return sends([=, &ports, name = tables[choice % tables.size()]] {
        return CreateTable(ports, {name, {"f"}}, even_split_keys(1 + (choice >> 8) % 3));
      });
    }
    case Actor::kDeleteTable:
      return sends([=, &ports] { return DeleteTable(ports, table); });
    case Actor::kEnableTable:
      return sends([=, &ports] { return EnableTable(ports, table); });
    case Actor::kDisableTable:
      return sends([=, &ports] { return DisableTable(ports, table); });
    case Actor::kModifyTable:
      return sends([=, &ports] {
        return ModifyTable(ports, {table, {"f", choice % 2 == 0 ? "g" : "h"}});
      });
    case Actor::kTruncateTable:
      return sends([=, &ports] {
        return TruncateTable(ports, table,
                             choice % 2 == 0 ? TruncateSplits::kPreserve : TruncateSplits::kDrop);
      });
    case Actor::kCreateNamespace:
      return sends([&ports] { return CreateNamespace(ports, {"m"}); });
    case Actor::kModifyNamespace:
      return sends([=, &ports] { return ModifyNamespace(ports, {name_space, choice % 3}); });
    case Actor::kDeleteNamespace:
      return sends([=, &ports] { return DeleteNamespace(ports, name_space); });
    case Actor::kAddPeer:
      return sends([&ports] { return AddPeer(ports, PeerRow{"p", {"/other", {}}}); });
    case Actor::kRemovePeer:
      return sends([&ports] { return RemovePeer(ports, "p"); });
    case Actor::kEnablePeer:
      return sends([&ports] { return EnablePeer(ports, "p"); });
    case Actor::kDisablePeer:
      return sends([&ports] { return DisablePeer(ports, "p"); });
    case Actor::kUpdatePeerConfig:
      return sends([=, &ports] {
        return UpdatePeerConfig(ports, "p", {"/other", {{"n", choice % 2 == 0 ? "t" : "u"}}});
      });
    case Actor::kLock:
      return choose_lock(cluster, choice);
    case Actor::kAssign:
    case Actor::kUnassign:
    case Actor::kMove:
    case Actor::kReopen:
    case Actor::kSplit:
    case Actor::kMerge:
      return choose_region_act(actor, cluster, servers, choice);
    case Actor::kInitMeta:
      return sends([&ports] { return InitMeta(ports); });
    case Actor::kServerCrash:
      break;
  }
  return std::nullopt;
}

}  // namespace pv2::testing
