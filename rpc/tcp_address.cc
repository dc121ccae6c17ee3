// SPDX-License-Identifier: Apache-2.0
//
// An address is cut at its last colon; only a host in brackets may have colons of its own.

#include "tcp_address.h"

#include <fmt/format.h>

#include <charconv>

namespace pv2 {
namespace {

// A DNS name has at most 253 characters.
constexpr std::size_t kHostSizeMax = 253;

Status invalid(std::string_view text, std::string_view what) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("'{}' is no address: {}; an address is host:port, such as "
                            "127.0.0.1:9000 or [::1]:9000",
                            text.substr(0, kHostSizeMax), what));
}

}  // namespace

std::optional<asio::ip::address> TcpAddress::ip() const {
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (error) return std::nullopt;
  return address;
}

Result<TcpAddress> parse_tcp_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return invalid(text, "it has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);

  TcpAddress address;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size()) {
    return invalid(text, "the port is a number from 0 to 65535");
  }
  const bool in_brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (in_brackets) host = host.substr(1, host.size() - 2);
  if (host.empty()) return invalid(text, "it has no host");
  if (host.size() > kHostSizeMax) return invalid(text, "the host is too long");
  for (const char c : host) {
    if (c <= ' ' || c == '\x7f')
      return invalid(text, "the host has a blank or a control character");
  }
  address.host = std::string(host);
  if (in_brackets && (!address.ip() || !address.ip()->is_v6())) {
    return invalid(text, "what is in brackets is no IPv6 address");
  }
  if (!in_brackets && host.find(':') != std::string_view::npos) {
    return invalid(text, "an IPv6 address is written in brackets");
  }
  return address;
}

std::string to_string(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  if (endpoint.address().is_v6()) return fmt::format("[{}]:{}", host, endpoint.port());
  return fmt::format("{}:{}", host, endpoint.port());
}

}  // namespace pv2
