// SPDX-License-Identifier: Apache-2.0
//
// How the ports of the procedures name a log of a dead server: "u3@52311", with how much of it is
// to be split. What a server appends after its fence was never acknowledged, and must not be there
// in one attempt at a split and missing in another.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "storage/log_directories.h"

namespace pv2::cluster {

[[nodiscard]] std::string name_log(const LogFile& log);
/// No value: that is no name of a log.
[[nodiscard]] std::optional<LogFile> parse_log_name(std::string_view name);

}  // namespace pv2::cluster
