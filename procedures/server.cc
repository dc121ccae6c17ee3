// SPDX-License-Identifier: Apache-2.0
//
// The texts for servers and their states, and what makes a server's name legal.

#include "pv2/procedures/server.h"

#include <charconv>

#include "pv2/procedures/table.h"

namespace pv2 {

std::string to_string(const ServerName& name) {
  return name.host + ',' + std::to_string(name.start_code);
}

ServerName parse_server_name(std::string_view text) {
  const std::size_t comma = text.rfind(',');
  if (comma == std::string_view::npos) return {};
  ServerName name{.host = std::string(text.substr(0, comma)), .start_code = 0};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + comma + 1, end, name.start_code);
  return error == std::errc() && stop == end ? name : ServerName{};
}

Status check_server_name(const ServerName& name) {
  if (Status bad = check_name("host", name.host, true); !bad.ok()) return bad;
  if (name.host.size() <= kHostBytesMax) return {};
  return {StatusCode::kInvalidArgument, "host '" + name.host + "' has more than " +
                                            std::to_string(kHostBytesMax) +
                                            " bytes; use a shorter name"};
}

std::string_view to_string(ServerState state) noexcept {
  switch (state) {
    case ServerState::kOnline:
      return "ONLINE";
    case ServerState::kCrashed:
      return "CRASHED";
    case ServerState::kRetired:
      return "RETIRED";
    case ServerState::kRecovered:
      return "RECOVERED";
  }
  return "UNKNOWN";
}

}  // namespace pv2
