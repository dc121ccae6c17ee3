// SPDX-License-Identifier: Apache-2.0
//
// Fleet: all clients of a campaign, each with a connection of its own, on one thread.

#pragma once

#include <pv2/base/status.h>
#include <pv2/rpc/rpc_client.h>
#include <pv2/rpc/transport.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "answer_ledger.h"
#include "caller.h"
#include "client.h"

namespace counter {

struct FleetOptions {
  std::shared_ptr<pv2::Transport> transport{};
  std::string address{};  ///< Of the network that loses things.
  Way way = Way::kNonce;
  Dedup dedup = Dedup::kOn;  ///< Of the ways in which that is up to the client.
  std::uint64_t clients = 16;
  Work work{};  ///< Of all clients together; `in_flight` is that of each.
  std::uint64_t seed = 1;
  /// Called with the number of answers so far, on the loop's thread.
  std::function<void(std::uint64_t)> on_answer{};
};

/// Thread-safe, except construction and destruction.
class Fleet {
 public:
  [[nodiscard]] static pv2::Result<std::unique_ptr<Fleet>> open(FleetOptions options);
  /// Operations under way are given up. Not on the loop's thread.
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  void start();
  [[nodiscard]] std::uint64_t answers() const noexcept { return answers_.load(); }
  [[nodiscard]] bool has_finished() const noexcept { return answers() == operations_; }

  struct Counts {
    std::uint64_t sent = 0;  ///< Calls, each attempt counted.
    std::uint64_t connections = 0;
    std::uint64_t asked_again = 0;
  };
  [[nodiscard]] Counts counts() const;
  /// For whoever asks when the fleet has finished.
  [[nodiscard]] AnswerLedger& ledger() noexcept { return ledger_; }

 private:
  explicit Fleet(FleetOptions options);
  pv2::Status add_client(std::uint64_t number);

  const FleetOptions options_;
  const std::uint64_t operations_;
  std::atomic<std::uint64_t> answers_ = 0;
  AnswerLedger ledger_;
  // Of one client each, in the same order. An RpcClient is destroyed before its Client, which it
  // still tells outcomes.
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<pv2::RpcClient>> links_;
};

}  // namespace counter
