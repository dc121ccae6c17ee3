// SPDX-License-Identifier: Apache-2.0
//
// All state belongs to the loop's thread.

#include "pv2/rpc/fault_routes.h"

#include <pv2/base/assert.h>

#include <utility>

namespace pv2 {

FaultRoutes::FaultRoutes(Transport& transport, std::string listen, RandomFaultsOptions faults)
    : transport_(transport), listen_(std::move(listen)), faults_(faults) {}

Result<std::string> FaultRoutes::through(const std::string& address) {
  Result<std::string> way{std::string()};
  run_on_loop(transport_, [&] { way = make_way(address); });
  return way;
}

Result<std::string> FaultRoutes::make_way(const std::string& address) {
  if (const auto found = ways_.find(address); found != ways_.end()) {
    return found->second.proxy->address();
  }
  auto plan = RandomFaults::create(faults_);
  if (!plan.ok()) return plan.status();
  Way way{.plan = *std::move(plan), .proxy = nullptr};
  auto proxy = FaultProxy::open(
      {.transport = &transport_, .listen = listen_, .target = address, .plan = way.plan});
  if (!proxy.ok()) return proxy.status().with_context("a way to " + address);
  ++faults_.seed;
  way.proxy = *std::move(proxy);
  return ways_.emplace(address, std::move(way)).first->second.proxy->address();
}

Status FaultRoutes::set_rates(const FaultRates& rates) {
  RandomFaultsOptions faults;
  faults.to_server = faults.to_client = rates;
  if (auto checked = RandomFaults::create(faults); !checked.ok()) return checked.status();
  run_on_loop(transport_, [&] {
    faults_.to_server = faults_.to_client = rates;
    for (const auto& [address, way] : ways_) {
      for (const Direction direction : {Direction::kToServer, Direction::kToClient}) {
        const Status set = way.plan->set_rates(direction, rates);
        PV2_ASSERT(set.ok(), "the rates were checked");
      }
    }
  });
  return {};
}

void FaultRoutes::cut_all() {
  run_on_loop(transport_, [this] {
    for (const auto& [address, way] : ways_) way.proxy->cut_all();
  });
}

FaultCounts FaultRoutes::counts() const {
  FaultCounts all;
  run_on_loop(transport_, [&] {
    for (const auto& [address, way] : ways_) {
      const FaultProxyCounters counters = way.proxy->counters();
      for (const FaultCounts& one : {counters.to_server, counters.to_client}) {
        all.passed += one.passed;
        all.dropped += one.dropped;
        all.duplicated += one.duplicated;
        all.delayed += one.delayed;
        all.reordered += one.reordered;
        all.cut += one.cut;
        all.half_opened += one.half_opened;
        all.swallowed_bytes += one.swallowed_bytes;
        all.undecodable += one.undecodable;
        all.plan_failures += one.plan_failures;
      }
    }
  });
  return all;
}

void FaultTransport::connect(std::string_view address, Duration timeout, Connected connected) {
  const Result<std::string> way = routes_->through(std::string(address));
  if (way.ok()) return below_->connect(*way, timeout, std::move(connected));
  below_->post([connected = std::move(connected), why = way.status()] { connected(why); });
}

}  // namespace pv2
