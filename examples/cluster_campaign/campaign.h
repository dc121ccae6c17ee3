// SPDX-License-Identifier: Apache-2.0
//
// The campaign: clients that write through a network that loses frames, on a cluster of real
// processes that are killed, stopped and started again, while regions are split, merged and moved.
// In the end each value is exactly what the clients were told.

#pragma once

#include <pv2/base/status.h>
#include <pv2/base/time.h>
#include <pv2/rpc/random_faults.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace campaign {

struct CampaignOptions {
  std::string directory{};
  std::size_t servers = 4;
  std::size_t clients = 8;
  pv2::Duration time = std::chrono::seconds(20);
  std::uint64_t seed = 1;
  pv2::FaultRates rates{.drop = 0.02, .duplicate = 0.03, .delay = 0.03, .cut = 0.004};
  /// The control: who does not know what became of a write sends it again under a new nonce.
  bool forgets_nonces = false;
  /// Takes a line now and then.
  std::function<void(const std::string&)> progress{};
};

struct CampaignReport {
  std::uint64_t increments = 0;
  std::uint64_t appends = 0;
  std::uint64_t puts = 0;
  std::uint64_t failed = 0;   ///< Writes that were refused for good: a table was disabled.
  std::uint64_t unknown = 0;  ///< Calls whose outcome the client did not know.
  std::uint64_t resumed = 0;  ///< Writes that were sent again until it was known.
  std::uint64_t server_kills = 0;
  std::uint64_t master_kills = 0;
  std::uint64_t pauses = 0;
  std::uint64_t orders = 0;       ///< Procedures that operators have submitted.
  std::uint64_t orders_done = 0;  ///< Of these, those that succeeded.
  std::uint64_t moves = 0;        ///< Regions found on another server than a moment before.
  std::uint64_t frames_lost = 0;
  std::uint64_t frames_repeated = 0;
  std::uint64_t cuts = 0;
  double seconds = 0;
  std::string wrong{};  ///< Empty: everything is as clients were told.
};

/// Blocks. A failure says that the campaign could not be held.
[[nodiscard]] pv2::Result<CampaignReport> run_campaign(const CampaignOptions& options);

[[nodiscard]] std::string to_text(const CampaignReport& report);

}  // namespace campaign
