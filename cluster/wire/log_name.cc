// SPDX-License-Identifier: Apache-2.0
//
// Names of logs with their sizes. Nothing here can fail.

#include "wire/log_name.h"

#include <charconv>

namespace pv2::cluster {

std::string name_log(const LogFile& log) { return log.name + '@' + std::to_string(log.size); }

std::optional<LogFile> parse_log_name(std::string_view name) {
  const std::size_t at = name.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  LogFile log{std::string(name.substr(0, at)), 0};
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + at + 1, end, log.size);
  if (error != std::errc() || stop != end) return std::nullopt;
  return log;
}

}  // namespace pv2::cluster
