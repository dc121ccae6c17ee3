// SPDX-License-Identifier: Apache-2.0
//
// ServerRegistry: which servers live. A server lives from its first heartbeat until nothing is
// heard of it for the length of a lease, or until it is recorded as dead. Volatile: after a start
// the registry expects the servers that have logs, and takes those for dead that do not come.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/procedures/server.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "wire/server_messages.h"

namespace pv2::cluster {

/// Used on the loop only.
class ServerRegistry {
 public:
  /// `expired` is called once for each server that is given up.
  ServerRegistry(Duration lease,
                 std::function<void(const ServerName&, const std::string& why)> expired)
      : lease_(lease), expired_(std::move(expired)) {}

  /// The server may be alive: it has logs. It counts from its first heartbeat on.
  void expect(const ServerName& server, SteadyTime now);
  /// False: the server was given up; it is told that it is dead.
  bool heard(const Heartbeat& heartbeat, SteadyTime now);
  /// Takes the server for dead now, whatever it says.
  void give_up(const ServerName& server, const std::string& why);
  /// Gives up servers whose lease has ended. If nobody has looked for a large part of a lease, the
  /// silence was this process's own, and all leases begin anew.
  void look(SteadyTime now);
  /// The server is recorded as dead: nothing more is to be kept of it.
  void forget(const ServerName& server);

  /// In order of name.
  [[nodiscard]] std::vector<ServerName> live() const;
  [[nodiscard]] bool lives(const ServerName& server) const;
  /// Whether it may be alive, and has sent no heartbeat yet.
  [[nodiscard]] bool is_expected(const ServerName& server) const;
  [[nodiscard]] bool is_given_up(const ServerName& server) const;
  /// All that are not given up, also those that are only expected.
  [[nodiscard]] std::vector<ServerName> known() const;
  [[nodiscard]] std::optional<std::string> address(const ServerName& server) const;
  [[nodiscard]] std::vector<ServerEntry> entries(SteadyTime now) const;
  [[nodiscard]] Duration lease() const noexcept { return lease_; }

 private:
  struct Entry {
    SteadyTime last_heard{};
    std::optional<Heartbeat> heartbeat;  // none: expected only
    bool is_given_up = false;
  };

  const Duration lease_;
  const std::function<void(const ServerName&, const std::string& why)> expired_;
  SteadyTime looked_{};
  std::map<ServerName, Entry> servers_;
};

}  // namespace pv2::cluster
