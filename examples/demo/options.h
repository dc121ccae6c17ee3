// SPDX-License-Identifier: Apache-2.0
//
// The options of the demo's command line. Parsing has no effects; a bad option gives a Status whose
// message tells a person what to do.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kill_point.h"

namespace demo {

struct Options {
  std::string data;  ///< Empty: a temporary directory.
  /// Without one, the story's own two (see --help).
  std::optional<KillPoint> kill_point{};
  std::uint64_t rounds = 1;
  std::uint64_t seed = 0;  ///< 0: from the system.
  std::string table = "t";
  std::vector<std::string> families{"f1"};
  std::uint64_t regions = 3;
  bool help = false;
};

pv2::Result<Options> parse_options(std::span<char* const> arguments);

/// One line.
[[nodiscard]] std::string usage();
/// The whole of --help.
[[nodiscard]] std::string help();

}  // namespace demo
