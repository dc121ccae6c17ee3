// SPDX-License-Identifier: Apache-2.0
//
// The command line of the counter service. Parsing has no effects; a bad option gives a Status
// whose message tells a person what to do.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <span>
#include <string>

#include "campaign.h"
#include "serve.h"

namespace counter {

struct Options {
  enum class Command : std::uint8_t { kDemo, kRun, kServe, kHelp };
  Command command = Command::kHelp;
  CampaignOptions campaign{};  ///< Of run and demo. `directory` empty: a temporary one.
  ServeOptions serve{};
};

pv2::Result<Options> parse_options(std::span<char* const> arguments);

/// The whole of --help.
[[nodiscard]] std::string help();

}  // namespace counter
