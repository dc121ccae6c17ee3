// SPDX-License-Identifier: Apache-2.0
//
// What an order finds may have changed when it arrives. It is refused then, or fails.

#include "cluster/simulation/story_orders.h"

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
#include <chrono>
#include <utility>

namespace pv2::testing::cluster_simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Rows are kept in the first two; others come and go.
const TableName kLedger{"default", "ledger"};
const TableName kDiary{"n", "diary"};
const TableName kScratch{"n", "scratch"};

std::string key_inside(const RegionInfo& region, Random& random) {
  const auto first = [](const std::string& key, int otherwise) {
    return key.empty() ? otherwise : static_cast<int>(static_cast<unsigned char>(key.front()));
  };
  const int low = first(region.start_key, 0);
  const int high = first(region.end_key, 255);
  if (high - low < 2) return region.start_key + "m";
  return {
      1, static_cast<char>(
             low + 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low - 1))))};
}

}  // namespace

StoryOrders::StoryOrders(cluster_world::ClusterWorld& world, WriteHistory& history, Random& random,
                         std::function<void(std::string)> tell)
    : world_(world),
      history_(history),
      random_(random),
      tell_(std::move(tell)),
      tables_{kLedger, kDiary} {}

template <class Make>
void StoryOrders::order(RemoteExecutor& executor, std::string words, Make make) {
  const auto made = std::make_shared<Order>();
  made->words = std::move(words);
  made->nonce = {0xdd1, ++made_};
  made->is_lock = std::is_same_v<decltype(make()), LockProcedure>;
  made->send = [make](RemoteExecutor& to, RemoteSubmitOptions options, bool is_resumed,
                      SubmitOutcomeDone done) {
    if (is_resumed) {
      (void)to.resume(options.nonce, make(), options, std::move(done));
    } else {
      (void)to.submit(make(), options, std::move(done));
    }
  };
  orders_.push_back(made);
  tell_("order " + std::to_string(made_) + ": " + made->words);
  send(executor, made, one_in(3) ? milliseconds(1 + random_.below(300)) : milliseconds(20'000));
}

void StoryOrders::send(RemoteExecutor& executor, const OrderPointer& order, Duration timeout) {
  const bool is_resumed = std::exchange(order->was_sent, true);
  ++order->in_flight;
  order->send(executor, {.nonce = order->nonce, .timeout = timeout}, is_resumed,
              [this, order](const SubmitOutcome& outcome) {
                --order->in_flight;
                tell_("order " + std::to_string(order->nonce.value) + " is " +
                      (outcome.ok() ? "procedure " + std::to_string(outcome.id.value)
                                    : outcome.status.to_string()));
                if (outcome.kind == SubmitOutcome::Kind::kFailed) order->is_refused = true;
                if (!outcome.ok()) return;
                if (order->id && order->id != outcome.id && contradiction_.empty()) {
                  contradiction_ = "'" + order->words + "' is two procedures under one nonce";
                }
                order->id = outcome.id;
              });
}

void StoryOrders::wait(RemoteExecutor& executor, const OrderPointer& order) {
  if (order->is_asked) return;
  order->is_asked = true;
  (void)executor.wait(order->id, seconds(20), [this, order](const Result<ProcedureResult>& result) {
    order->is_asked = false;
    if (!result.ok()) return;
    if (order->result && order->result->code() != result->status.code() && contradiction_.empty()) {
      contradiction_ = "'" + order->words + "' has ended as " + order->result->to_string() +
                       " and as " + result->status.to_string();
    }
    if (!order->result) {
      tell_("order " + std::to_string(order->nonce.value) +
            " has ended: " + result->status.to_string());
    }
    order->result = result->status;
  });
}

void StoryOrders::ask(RemoteExecutor& executor) {
  for (const OrderPointer& order : orders_) {
    if (order->id && !order->result) wait(executor, order);
    if (!order->id && !order->is_refused && order->in_flight == 0)
      send(executor, order, seconds(20));
  }
}

bool StoryOrders::are_known() const {
  return std::ranges::all_of(orders_, [](const OrderPointer& order) {
    return order->is_refused || order->result.has_value();
  });
}

std::size_t StoryOrders::done() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      orders_, [](const OrderPointer& order) { return order->result && order->result->ok(); }));
}

void StoryOrders::abort_one(RemoteExecutor& executor) {
  if (orders_.empty()) return;
  const OrderPointer& order = orders_[random_.below(orders_.size())];
  if (!order->id || order->result) return;
  tell_("order " + std::to_string(order->nonce.value) + " is to be aborted");
  (void)executor.abort(order->id, "changed my mind", "op", [](const RemoteOutcome&) {});
}

void StoryOrders::unlock(RemoteExecutor& executor) {
  for (const OrderPointer& order : orders_) {
    if (!order->is_lock || !order->id || order->result) continue;
    executor.signal(order->id, std::string(LockProcedure::kUnlockSignal), "", {},
                    [](const RemoteOutcome&) {});
  }
}

std::vector<RegionInfo> StoryOrders::regions() {
  if (world_.has_master() && !one_in(8)) {
    std::vector<RegionInfo> present;
    for (const auto& [id, kept] : world_.master().rows().regions()) {
      if (!is_meta(kept.row.region.table)) present.push_back(kept.row.region);
    }
    if (!present.empty()) seen_ = present;
  }
  return seen_;
}

void StoryOrders::act(RemoteExecutor& executor) {
  const std::uint64_t kind = random_.below(10);
  const std::uint64_t choice = random_.next();
  if (kind < 5) return act_on_regions(executor, choice);
  if (kind < 8) return act_on_table(executor, choice);
  act_on_others(executor, choice);
}

void StoryOrders::act_on_table(RemoteExecutor& executor, std::uint64_t choice) {
  ClusterPorts& ports = ports_elsewhere();
  const TableName table = one_in(3) ? kScratch : tables_[(choice >> 8) % tables_.size()];
  const std::string name = to_string(table);
  switch (choice % 10) {
    case 0:
    case 1: {
      TableName made = kScratch;
      if (one_in(2)) made.table += std::to_string(choice % 3);
      const std::size_t parts = 1 + (choice >> 16) % 4;
      if (std::ranges::find(tables_, made) == tables_.end()) tables_.push_back(made);
      return order(executor, "create " + to_string(made), [=, &ports] {
        return CreateTable(ports, {made, {"f"}}, even_split_keys(parts));
      });
    }
    case 2:
    case 3:
      return order(executor, "disable " + name, [=, &ports] { return DisableTable(ports, table); });
    case 4:
    case 5:
    case 6:
      return order(executor, "enable " + name, [=, &ports] { return EnableTable(ports, table); });
    case 7: {
      const std::string more = (choice >> 16) % 2 == 0 ? "g" : "h";
      return order(executor, "modify " + name, [=, &ports] {
        return ModifyTable(ports, {table, {"f", more}});
      });
    }
    default:
      break;
  }
  // The two that keep rows are not emptied.
  if (table == kLedger || table == kDiary) return;
  history_.loosen(table);
  if (choice % 10 == 8) {
    return order(executor, "delete " + name, [=, &ports] { return DeleteTable(ports, table); });
  }
  const auto splits = (choice >> 16) % 2 == 0 ? TruncateSplits::kPreserve : TruncateSplits::kDrop;
  order(executor, "truncate " + name, [=, &ports] { return TruncateTable(ports, table, splits); });
}

void StoryOrders::act_on_regions(RemoteExecutor& executor, std::uint64_t choice) {
  ClusterPorts& ports = ports_elsewhere();
  const std::vector<RegionInfo> all = regions();
  if (all.empty()) return;
  const RegionInfo region = all[(choice >> 8) % all.size()];
  const std::string name = "region " + region.id + " of " + to_string(region.table);
  switch (choice % 10) {
    case 0:
      return order(executor, "assign " + name,
                   [=, &ports] { return TransitRegionState::assign(ports, region); });
    case 1:
      return order(executor, "unassign " + name,
                   [=, &ports] { return TransitRegionState::unassign(ports, region); });
    case 2:
      return order(executor, "reopen " + name,
                   [=, &ports] { return TransitRegionState::reopen(ports, region); });
    case 3:
    case 4: {
      // The catalogue's own region moves too.
      const RegionInfo moved = one_in(4) ? meta_region() : region;
      const std::vector<ServerName> servers = world_.servers();
      if (servers.empty()) return;
      const ServerName target = servers[(choice >> 20) % servers.size()];
      return order(executor, "move region " + moved.id + " to " + to_string(target),
                   [=, &ports] { return TransitRegionState::move(ports, moved, target); });
    }
    case 5:
    case 6:
    case 7: {
      const std::string key = key_inside(region, random_);
      return order(executor, "split " + name,
                   [=, &ports] { return SplitTableRegion(ports, region, key); });
    }
    default:
      break;
  }
  std::vector<RegionInfo> parents;
  std::ranges::copy_if(all, std::back_inserter(parents),
                       [&](const RegionInfo& other) { return other.table == region.table; });
  std::ranges::sort(parents, {}, &RegionInfo::start_key);
  const auto first = std::ranges::find(parents, region.id, &RegionInfo::id);
  parents.erase(parents.begin(), first);
  parents.resize(std::min<std::size_t>(parents.size(), 2 + (choice >> 30) % 2));
  if (parents.size() < 2) return;
  order(executor, "merge " + std::to_string(parents.size()) + " from " + name,
        [=, &ports] { return MergeTableRegions(ports, parents); });
}

void StoryOrders::act_on_others(RemoteExecutor& executor, std::uint64_t choice) {
  ClusterPorts& ports = ports_elsewhere();
  const std::string name_space = (choice >> 8) % 2 == 0 ? "n" : "m";
  const std::string peer = (choice >> 8) % 3 == 0 ? "p" : "q";
  switch (choice % 11) {
    case 0:
    case 1:
      return order(executor, "create namespace " + name_space,
                   [=, &ports] { return CreateNamespace(ports, {name_space}); });
    case 2:
      return order(executor, "modify namespace " + name_space, [=, &ports] {
        return ModifyNamespace(ports, {name_space, (choice >> 16) % 5});
      });
    case 3:
      return order(executor, "delete namespace m",
                   [&ports] { return DeleteNamespace(ports, "m"); });
    case 4:
      return order(executor, "add peer " + peer, [=, &ports] {
        return AddPeer(ports, PeerRow{peer, {"/other", {}}, (choice >> 16) % 2 == 0});
      });
    case 5:
      return order(executor, "remove peer " + peer,
                   [=, &ports] { return RemovePeer(ports, peer); });
    case 6:
      return order(executor, "enable peer " + peer,
                   [=, &ports] { return EnablePeer(ports, peer); });
    case 7:
      return order(executor, "disable peer " + peer,
                   [=, &ports] { return DisablePeer(ports, peer); });
    case 8:
      return order(executor, "update peer " + peer, [=, &ports] {
        return UpdatePeerConfig(ports, peer, {"/other", {{"n", (choice >> 16) % 2 ? "t" : "u"}}});
      });
    case 9:
      return order(executor, "make the catalogue", [&ports] { return InitMeta(ports); });
    default:
      break;
  }
  const TableName table = tables_[(choice >> 16) % tables_.size()];
  LockOrder lock{.name_space = table.name_space, .description = "for a story"};
  lock.lease = seconds(1 + random_.below(20));
  if (!one_in(3)) lock.table = table.table;
  if (!lock.table.empty() && one_in(2)) lock.mode = LockMode::kShared;
  order(executor, "lock " + to_string(table), [lock] { return LockProcedure(lock); });
}

void StoryOrders::assign_closed(RemoteExecutor& executor) {
  ClusterPorts& ports = ports_elsewhere();
  const CatalogueState& rows = world_.master().rows();
  for (const auto& [id, kept] : rows.regions()) {
    const RegionInfo region = kept.row.region;
    const auto table = rows.table(region.table);
    const bool is_closed =
        kept.row.state == RegionState::kClosed || kept.row.state == RegionState::kFailedOpen;
    if (!is_closed || !table || table->state != TableState::kEnabled) continue;
    order(executor, "assign the closed region " + id,
          [=, &ports] { return TransitRegionState::assign(ports, region); });
  }
}

void StoryOrders::enable(RemoteExecutor& executor, const TableName& table) {
  const auto row = world_.master().rows().table(table);
  if (!row || row->state != TableState::kDisabled) return;
  order(executor, "enable " + to_string(table),
        [=] { return EnableTable(ports_elsewhere(), table); });
}

}  // namespace pv2::testing::cluster_simulation
