// SPDX-License-Identifier: Apache-2.0
//
// What the demo can be asked for on its command line. Parsing has no effects; a bad option is a
// Status whose message a person can act on.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kill_point.h"

namespace demo {

struct Options {
  std::string data;  ///< Empty: a temporary directory.
  KillPoint kill_point{KillPoint::Kind::kStep, "WRITE_FS_LAYOUT", 0};
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
