// SPDX-License-Identifier: Apache-2.0
//
// TcpAddress: a host and a port as people write them, "db.example:9000" or "[::1]:9000". Whether
// the host exists is not known here.

#pragma once

#include <pv2/base/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "asio_types.h"

namespace pv2 {

struct TcpAddress {
  std::string host{};  ///< Without brackets.
  std::uint16_t port = 0;

  /// The host as a number, if it is one.
  [[nodiscard]] std::optional<asio::ip::address> ip() const;
};

/// kInvalidArgument: the message quotes the text, and says how an address is written.
[[nodiscard]] Result<TcpAddress> parse_tcp_address(std::string_view text);

/// "127.0.0.1:40312", "[::1]:40312".
[[nodiscard]] std::string to_string(const tcp::endpoint& endpoint);

}  // namespace pv2
