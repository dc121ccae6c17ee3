// SPDX-License-Identifier: Apache-2.0
//
// LossyRoute: a FaultProxy in front of every address that somebody connects to, made when it is
// first asked for. It works for the network in memory and for real sockets.

#pragma once

#include <pv2/rpc/fault_proxy.h>
#include <pv2/rpc/random_faults.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "support/catch.h"

namespace pv2::testing {

/// Used on the loop's thread of the transport, which outlives it.
class LossyRoute {
 public:
  /// `listen` is where the proxies listen, with a port of 0. `options.seed` is that of the first
  /// proxy; each has its own.
  LossyRoute(Transport& transport, std::string listen, RandomFaultsOptions options)
      : transport_(transport), listen_(std::move(listen)), options_(options) {}

  /// The address of the proxy for `address`.
  std::string through(const std::string& address) {
    if (const auto found = proxies_.find(address); found != proxies_.end()) {
      return found->second.proxy->address();
    }
    auto plan = RandomFaults::create(options_);
    REQUIRE(plan.ok());
    ++options_.seed;
    const std::shared_ptr<RandomFaults> shared = *std::move(plan);
    auto proxy = FaultProxy::open(
        {.transport = &transport_, .listen = listen_, .target = address, .plan = shared});
    REQUIRE(proxy.status().to_string() == "OK");
    const auto made = proxies_.emplace(address, Way{shared, *std::move(proxy)}).first;
    return made->second.proxy->address();
  }

  /// Of the frames that come from now on.
  void set_rates(const FaultRates& rates) {
    options_.to_server = options_.to_client = rates;
    for (const auto& [address, way] : proxies_) {
      for (const Direction direction : {Direction::kToServer, Direction::kToClient}) {
        REQUIRE(way.plan->set_rates(direction, rates).ok());
      }
    }
  }
  void cut_all() {
    for (const auto& [address, way] : proxies_) way.proxy->cut_all();
  }
  /// The frames that did not arrive, and those that came more than once.
  struct Counts {
    std::uint64_t lost = 0;
    std::uint64_t repeated = 0;
    std::uint64_t cut = 0;
  };
  [[nodiscard]] Counts counts() const {
    Counts all;
    for (const auto& [address, way] : proxies_) {
      const FaultProxyCounters counters = way.proxy->counters();
      for (const FaultCounts& one : {counters.to_server, counters.to_client}) {
        all.lost += one.dropped;
        all.repeated += one.duplicated;
        all.cut += one.cut;
      }
    }
    return all;
  }

 private:
  struct Way {
    std::shared_ptr<RandomFaults> plan;
    std::unique_ptr<FaultProxy> proxy;
  };

  Transport& transport_;
  const std::string listen_;
  RandomFaultsOptions options_;
  std::map<std::string, Way> proxies_;
};

}  // namespace pv2::testing
