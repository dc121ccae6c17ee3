// SPDX-License-Identifier: Apache-2.0
//
// Campaign: many clients use the service through a network that loses and repeats things, while the
// process of the service is killed again and again; in the end every answer is compared with what
// there is.
//
//     clients --- network (FaultProxy) --- server, a process that is killed
//
// The campaign counts answers, not seconds: when the clients have had a certain number of them, it
// kills the server. The server comes back at another port, and the campaign tells the network.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <functional>
#include <string>

#include "caller.h"
#include "counted_faults.h"
#include "service.h"

namespace counter {

struct CampaignOptions {
  std::string directory;  ///< Where the server keeps its store; empty or new.
  Way way = Way::kNonce;
  Dedup dedup = Dedup::kOn;
  std::uint64_t increments = 4000;  ///< And one append for each 16 of them.
  std::uint64_t clients = 16;
  std::uint64_t kills = 5;
  std::uint64_t in_flight = 64;  ///< Operations of one client at a time.
  LossRates rates{};
  std::uint64_t seed = 1;
  /// Takes a line when another tenth is done.
  std::function<void(const std::string&)> progress{};
};

/// What happened. Numbers of calls count each attempt.
struct CampaignReport {
  std::uint64_t increments = 0;  ///< That succeeded,
  std::uint64_t refused = 0;     ///< or failed for good, because the purse was full.
  std::uint64_t appends = 0;
  std::uint64_t calls_sent = 0;
  std::uint64_t calls_lost = 0;
  std::uint64_t calls_repeated = 0;
  std::uint64_t replies_sent = 0;
  std::uint64_t replies_lost = 0;
  std::uint64_t replies_repeated = 0;
  std::uint64_t asked_again = 0;  ///< Operations whose call had ended as unknown.
  /// How many calls reached a handler of the server. A kill loses the newest part of the count.
  std::uint64_t calls_handled = 0;
  /// How many of these calls the server ran; the others got a saved answer. The engine does not
  /// count this, so its way leaves 0 here.
  std::uint64_t runs = 0;
  std::uint64_t connections = 0;
  std::uint64_t kills = 0;  ///< Fewer than planned, if the work was done before.
  std::uint64_t kills_planned = 0;
  // What there is in the end, of all counters and texts, and what clients were told of it.
  std::uint64_t counted = 0;
  std::uint64_t told = 0;
  std::uint64_t text_bytes = 0;
  std::uint64_t told_bytes = 0;
  double seconds = 0;
  /// The first contradiction. Empty: each effect is there once, and each answer was right.
  std::string wrong;
};

/// Runs one. Fails if something of the program itself cannot work: a server that does not start, or
/// ends by itself.
[[nodiscard]] pv2::Result<CampaignReport> run_campaign(const CampaignOptions& options);

/// What happened, in lines for a person; the last one begins with OK or WRONG.
[[nodiscard]] std::string to_text(const CampaignReport& report);

}  // namespace counter
