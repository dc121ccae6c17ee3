// SPDX-License-Identifier: Apache-2.0
//
// What an order finds may have changed when it arrives; then it fails, which is no fault.

#include "operator.h"

#include <fmt/format.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/delete_table.h>
#include <pv2/procedures/disable_table.h>
#include <pv2/procedures/enable_table.h>
#include <pv2/procedures/merge_table_regions.h>
#include <pv2/procedures/modify_table.h>
#include <pv2/procedures/split_table_region.h>
#include <pv2/procedures/transit_region_state.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "writers.h"

namespace campaign {
namespace {

using pv2::RegionRow;
using pv2::RegionState;
using pv2::Result;
using pv2::Status;
using pv2::StatusCode;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kRegionsMax = 12;
constexpr std::size_t kRegionsMin = 3;

}  // namespace

void Operator::start() {
  thread_ = std::thread([this] {
    while (!is_over_) {
      act();
      std::this_thread::sleep_for(milliseconds(50 + random_.below(400)));
    }
  });
}

void Operator::stop() {
  is_over_ = true;
  if (thread_.joinable()) thread_.join();
}

OrderCounts Operator::counts() const {
  const pv2::MutexLock lock(counts_mutex_);
  return counts_;
}

template <class P>
bool Operator::order(P procedure) {
  {
    const pv2::MutexLock lock(counts_mutex_);
    ++counts_.orders;
  }
  const pv2::Nonce nonce = nonces_.next();
  pv2::SubmitOutcome outcome = client_->executor().submit(
      P(procedure), {.nonce = nonce, .expires_at = {}, .timeout = seconds(5)});
  // In the end too: what was begun has to be known.
  for (int i = 0; i < 60 && outcome.kind == pv2::SubmitOutcome::Kind::kUnknown; ++i) {
    outcome = client_->executor().resume(nonce, P(procedure), {.timeout = seconds(5)});
  }
  if (!follow(outcome)) return false;
  const pv2::MutexLock lock(counts_mutex_);
  ++counts_.done;
  return true;
}

bool Operator::follow(pv2::SubmitOutcome outcome) {
  if (!outcome.ok()) return false;
  const auto result = client_->executor().wait(outcome.id, minutes(3));
  return result.ok() && result->status.ok();
}

void Operator::act() {
  const auto regions = client_->regions_of(kTable);
  if (!regions.ok()) return;
  watch(*regions);
  if (random_.below(6) == 0) return act_on_tables();
  if (!regions->empty()) act_on_regions(*regions);
}

void Operator::watch(const std::vector<RegionRow>& regions) {
  std::uint64_t moves = 0;
  for (const RegionRow& row : regions) {
    if (row.state != RegionState::kOpen) continue;
    pv2::ServerName& place = places_[row.region.id];
    if (!place.empty() && place != row.server) ++moves;
    place = row.server;
  }
  const pv2::MutexLock lock(counts_mutex_);
  counts_.moves += moves;
}

void Operator::act_on_regions(const std::vector<RegionRow>& regions) {
  pv2::ClusterPorts& ports = pv2::ports_elsewhere();
  const std::size_t at = random_.below(regions.size());
  const pv2::RegionInfo& region = regions[at].region;
  const std::uint64_t choice = random_.below(10);
  if (choice < 3 && regions.size() < kRegionsMax) {
    const auto key = client_->split_point(region);
    if (key.ok() && !key->empty()) (void)order(pv2::SplitTableRegion(ports, region, *key));
    return;
  }
  if (choice < 5 && regions.size() > kRegionsMin && at + 1 < regions.size()) {
    (void)order(pv2::MergeTableRegions(ports, {region, regions[at + 1].region}));
    return;
  }
  if (choice == 5) return (void)order(pv2::TransitRegionState::reopen(ports, region));
  if (choice == 6) return (void)client_->flush(region);
  if (choice == 7) return (void)client_->compact(region);
  const auto servers = client_->servers();
  if (!servers.ok() || servers->live.empty()) return;
  const pv2::ServerName& target = servers->live[random_.below(servers->live.size())].name;
  // Sometimes the catalogue itself.
  const pv2::RegionInfo moved = random_.below(6) == 0 ? pv2::meta_region() : region;
  (void)order(pv2::TransitRegionState::move(ports, moved, target));
}

void Operator::act_on_tables() {
  pv2::ClusterPorts& ports = pv2::ports_elsewhere();
  const pv2::TableName other{"default", fmt::format("other{}_{}", number_, tables_)};
  switch (random_.below(4)) {
    case 0:
      (void)order(pv2::ModifyTable(ports, {kTable, {"f", random_.below(2) == 0 ? "g" : "h"}}));
      return;
    case 1:
      if (order(pv2::DisableTable(ports, kTable))) {
        while (!order(pv2::EnableTable(ports, kTable)) && !is_over_) {
        }
      }
      return;
    case 2:
      (void)order(pv2::CreateTable(ports, {other, {"f"}}, pv2::even_split_keys(3)));
      return;
    default:
      (void)order(pv2::DisableTable(ports, other));
      if (order(pv2::DeleteTable(ports, other))) ++tables_;
      return;
  }
}

Status Operator::tidy_up() {
  const auto end = std::chrono::steady_clock::now() + minutes(4);
  std::string left;
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(300));
    // Disabled and enabled again, whichever half was done.
    (void)order(pv2::EnableTable(pv2::ports_elsewhere(), kTable));
    const auto live = client_->executor().list({}, {}, 100);
    if (!live.ok()) {
      left = live.status().to_string();
      continue;
    }
    if (!live->procedures.empty()) {
      const pv2::ProcedureId id = live->procedures.front().id;
      const auto why = client_->executor().explain(id);
      left = why.ok() ? to_string(*why) : why.status().to_string();
      continue;
    }
    const auto regions = client_->regions_of(kTable);
    if (!regions.ok()) {
      left = regions.status().to_string();
      continue;
    }
    const auto closed = std::ranges::find_if(
        *regions, [](const RegionRow& row) { return row.state != RegionState::kOpen; });
    if (closed == regions->end()) return {};
    left = "region " + closed->region.id + " is " + std::string(to_string(closed->state));
    (void)order(pv2::TransitRegionState::assign(pv2::ports_elsewhere(), closed->region));
  }
  return {StatusCode::kDeadlineExceeded, "the cluster does not become quiet: " + left};
}

}  // namespace campaign
