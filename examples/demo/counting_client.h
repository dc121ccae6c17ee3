// SPDX-License-Identifier: Apache-2.0
//
// CountingClient: adds 1 to one of several rows of a table, and again, for as long as the story
// wants, whoever dies meanwhile. It remembers what was acknowledged.

#pragma once

#include <pv2/cluster/cluster_client.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace demo {

/// Owned by one thread. `client` outlives it.
class CountingClient {
 public:
  CountingClient(pv2::cluster::ClusterClient& client, pv2::TableName table, std::string family);
  /// Waits for the addition that is under way.
  ~CountingClient();
  CountingClient(const CountingClient&) = delete;
  CountingClient& operator=(const CountingClient&) = delete;

  void start();
  void stop();
  [[nodiscard]] std::uint64_t acknowledged() const;
  /// Reads all rows, and says what is wrong: each counter has to be what was acknowledged.
  [[nodiscard]] std::vector<std::string> check() const;

 private:
  struct Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace demo
