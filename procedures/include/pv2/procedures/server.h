// SPDX-License-Identifier: Apache-2.0
//
// What a region server is to the cluster: its identity, and its state in the catalogue. A server
// process that is started again is another server: it has another start code.

#pragma once

#include <pv2/base/status.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pv2 {

/// Names one run of one region server. An empty host means "no server". A plain value.
struct ServerName {
  std::string host;
  std::uint64_t start_code = 0;

  void fields(auto& f) {
    f(1, "host", host);
    f(2, "start_code", start_code);
  }
  [[nodiscard]] bool empty() const noexcept { return host.empty(); }
  friend auto operator<=>(const ServerName&, const ServerName&) = default;
};

/// "rs1,1700000000"; also the name of its lock.
[[nodiscard]] std::string to_string(const ServerName& name);
/// The inverse of to_string(); an empty name when the text is not a server name.
[[nodiscard]] ServerName parse_server_name(std::string_view text);

/// The host of a server. It becomes a part of names of files, with a log or a peer, of 255 bytes.
inline constexpr std::size_t kHostBytesMax = 100;
/// kInvalidArgument: no server can have this name, as it becomes a file name. Letters, digits, '_',
/// '-' and '.' are legal in a host.
[[nodiscard]] Status check_server_name(const ServerName& name);

/// Persisted. A server without a row counts as online.
enum class ServerState : std::uint8_t {
  kOnline = 1,
  kCrashed = 2,    ///< Serves nothing any more; from now on no region is recorded on it.
  kRetired = 3,    ///< Nothing is left to move either. The row stays, to refuse late writes.
  kRecovered = 4,  ///< Crashed, and all its logs are split: its regions may open elsewhere.
};

/// Whether a server in this state is fenced. Its regions may not be served there.
[[nodiscard]] constexpr bool is_dead(ServerState state) noexcept {
  return state != ServerState::kOnline;
}
/// Whether all edits that a server in this state has acknowledged can be read elsewhere, those of
/// the catalogue's region aside (ServerRow::meta_recovered).
[[nodiscard]] constexpr bool is_recovered(ServerState state) noexcept {
  return state == ServerState::kRecovered || state == ServerState::kRetired;
}

[[nodiscard]] std::string_view to_string(ServerState state) noexcept;

/// One server in the catalogue. A plain value.
struct ServerRow {
  ServerName name;
  ServerState state = ServerState::kOnline;
  /// The logs of the catalogue's own region are split, which happens first. True in every state
  /// after kCrashed.
  bool meta_recovered = false;

  void fields(auto& f) {
    f(1, "name", name);
    f(2, "state", state);
    f(3, "meta_recovered", meta_recovered);
  }
  friend bool operator==(const ServerRow&, const ServerRow&) = default;
};

}  // namespace pv2
