// SPDX-License-Identifier: Apache-2.0
//
// RawSocket: a socket of the operating system on the loopback, for peers that do what a transport
// never does: say nothing, or listen and not accept.

#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "support/catch.h"

namespace pv2::testing {

/// Owned by one thread.
class RawSocket {
 public:
  RawSocket() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) { REQUIRE(socket_ >= 0); }
  RawSocket(RawSocket&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  ~RawSocket() {
    if (socket_ >= 0) ::close(socket_);
  }

  /// Listens and never accepts; `backlog` connections may wait. Returns the address.
  std::string listen(int backlog) {
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof(at);
    REQUIRE(::bind(socket_, reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(::listen(socket_, backlog) == 0);
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    return "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  /// Connects to "127.0.0.1:<port>", or begins to.
  enum class Wait { kYes, kNo };
  void connect(std::string_view address, Wait wait = Wait::kYes) {
    std::uint16_t port = 0;
    const std::string_view digits = address.substr(address.rfind(':') + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), port);
    sockaddr_in to = loopback(port);
    if (wait == Wait::kNo) {
      const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      ::close(std::exchange(socket_, socket));
    }
    const int connected = ::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof(to));
    if (wait == Wait::kYes) REQUIRE(connected == 0);
  }
  void send(std::string_view bytes) {
    REQUIRE(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  /// Waits until the other end has closed.
  void wait_for_end() {
    char bytes[256];
    while (::recv(socket_, bytes, sizeof(bytes), 0) > 0) {
    }
  }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }
  int socket_;
};

}  // namespace pv2::testing
