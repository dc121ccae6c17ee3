// SPDX-License-Identifier: Apache-2.0
//
// PlainWire: how SocketStream reads and writes a socket without TLS. It waits for bytes without a
// buffer, and reads them when it is the stream's turn, so an idle stream holds no memory.

#pragma once

#include <pv2/base/status.h>

#include <boost/asio/buffer.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "asio_types.h"

namespace pv2 {

/// What a wire has read: valid until it reads again, or another stream does. would_block: there is
/// nothing after all.
struct TakenBytes {
  error_code error{};
  std::string_view bytes{};
};

/// Owned by the loop's thread.
class PlainWire {
 public:
  explicit PlainWire(LoopSocket socket) : socket_(std::move(socket)) {}
  [[nodiscard]] LoopSocket& socket() noexcept { return socket_; }

  Story<Status> greet_as_server() { co_return Status(); }
  Story<Status> greet_as_client(std::string /*name*/) { co_return Status(); }
  /// The connection stands, and start() may be called.
  void begin() {
    error_code ignored;  // if it fails, reading will tell
    socket_.non_blocking(true, ignored);
  }

  /// Calls `handler(error)` when there are bytes to take.
  template <class Handler>
  void async_wait_for_bytes(Handler handler) {
    socket_.async_wait(LoopSocket::wait_read, std::move(handler));
  }
  /// `shared` may be used for the bytes.
  [[nodiscard]] TakenBytes take_bytes(std::span<char> shared) {
    TakenBytes taken;
    const std::size_t size =
        socket_.read_some(asio::buffer(shared.data(), shared.size()), taken.error);
    taken.bytes = std::string_view(shared.data(), size);
    return taken;
  }
  /// Calls `handler(error, size)` when some of `bytes` are written.
  template <class Handler>
  void async_write_some(std::string_view bytes, Handler handler) {
    socket_.async_write_some(asio::buffer(bytes.data(), bytes.size()), std::move(handler));
  }

 private:
  LoopSocket socket_;
};

}  // namespace pv2
