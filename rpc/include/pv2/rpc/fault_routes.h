// SPDX-License-Identifier: Apache-2.0
//
// FaultRoutes: a FaultProxy in front of every address that somebody connects to, made when it is
// first asked for; and FaultTransport, a transport whose connections all take such a way. For
// clients that learn from one server where the next one is, so that no proxy can be put there
// beforehand. Like FaultProxy they are for tests, over real sockets and over a network in memory.

#pragma once

#include <pv2/base/status.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/rpc/fault_proxy.h"
#include "pv2/rpc/random_faults.h"
#include "pv2/rpc/transport.h"

namespace pv2 {

/// Thread-safe; every call waits for the loop's thread of the transport, as those of FaultProxy.
class FaultRoutes {
 public:
  /// `listen` is where the proxies listen, with a port of 0. `faults.seed` is that of the first
  /// proxy; the next one has the next seed. The transport outlives the routes.
  FaultRoutes(Transport& transport, std::string listen, RandomFaultsOptions faults);
  FaultRoutes(const FaultRoutes&) = delete;
  FaultRoutes& operator=(const FaultRoutes&) = delete;

  /// The address of the proxy that leads to `address`. Failures are those of FaultProxy::open() and
  /// RandomFaults::create().
  [[nodiscard]] Result<std::string> through(const std::string& address);
  /// Sets the rates of the frames that come from now on, both ways. kInvalidArgument changes
  /// nothing.
  Status set_rates(const FaultRates& rates);
  /// Cuts all connections at once.
  void cut_all();
  /// The sum over all proxies and both directions.
  [[nodiscard]] FaultCounts counts() const;

 private:
  struct Way {
    std::shared_ptr<RandomFaults> plan;
    std::unique_ptr<FaultProxy> proxy;
  };

  Result<std::string> make_way(const std::string& address);

  Transport& transport_;
  const std::string listen_;
  // On the loop's thread only:
  RandomFaultsOptions faults_;
  std::map<std::string, Way> ways_;  // by target
};

/// Thread-safe as the transport below.
class FaultTransport final : public Transport {
 public:
  /// The routes are over the same transport.
  FaultTransport(std::shared_ptr<Transport> below, std::shared_ptr<FaultRoutes> routes)
      : below_(std::move(below)), routes_(std::move(routes)) {}

  void post(std::function<void()> task) override { below_->post(std::move(task)); }
  [[nodiscard]] bool on_loop() const noexcept override { return below_->on_loop(); }
  [[nodiscard]] bool has_own_thread() const noexcept override { return below_->has_own_thread(); }
  [[nodiscard]] Clock& clock() const noexcept override { return below_->clock(); }
  TimerId call_at(SteadyTime when, std::function<void()> task) override {
    return below_->call_at(when, std::move(task));
  }
  void cancel(TimerId timer) override { below_->cancel(timer); }
  [[nodiscard]] Result<std::unique_ptr<StreamAcceptor>> listen(std::string_view address,
                                                               Accept accept) override {
    return below_->listen(address, std::move(accept));
  }
  /// Connects through a proxy. If none can be made, `connected` is told why.
  void connect(std::string_view address, Duration timeout, Connected connected) override;

 private:
  const std::shared_ptr<Transport> below_;
  const std::shared_ptr<FaultRoutes> routes_;
};

}  // namespace pv2
