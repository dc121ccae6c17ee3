// SPDX-License-Identifier: Apache-2.0
//
// ProcessTransport: the network as one process of a simulation has it. Everything that the network
// below would call (bytes, timers, tasks) waits in the inbox of the process until the simulation
// runs it. So processes take turns in any order, a stopped one hears nothing and knows nothing of
// it, and one that dies sends nothing more. It is no network of its own.

#pragma once

#include <pv2/rpc/transport.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace pv2::testing {

/// Owned by one thread. Its streams and acceptors may outlive it.
class ProcessTransport final : public Transport {
 public:
  /// Says where a connection to an address really goes: through a proxy, perhaps.
  using Route = std::function<std::string(const std::string& address)>;

  explicit ProcessTransport(std::shared_ptr<Transport> below, Route route = {});
  ~ProcessTransport() override;

  /// Runs what has waited longest. False: nothing waits.
  bool run_one();
  /// kSilent: the others hear nothing of it, as when a machine loses its power. kHeard: they see
  /// their connections closed, because the system does that when a process ends.
  enum class Death { kHeard, kSilent };
  /// From now on nothing is sent, and what waits is never run. To be called before the parts of the
  /// process are destroyed: what they say then is said by nobody. After kSilent this object keeps
  /// the ends that nobody closes.
  void die(Death death);

  void post(std::function<void()> task) override;
  [[nodiscard]] bool on_loop() const noexcept override;
  [[nodiscard]] bool has_own_thread() const noexcept override { return false; }
  [[nodiscard]] Clock& clock() const noexcept override;
  TimerId call_at(SteadyTime when, std::function<void()> task) override;
  void cancel(TimerId timer) override;
  [[nodiscard]] Result<std::unique_ptr<StreamAcceptor>> listen(std::string_view address,
                                                               Accept accept) override;
  void connect(std::string_view address, Duration timeout, Connected connected) override;

 private:
  class State;
  class InboxStream;

  const std::shared_ptr<State> state_;
};

}  // namespace pv2::testing
