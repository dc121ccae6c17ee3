// SPDX-License-Identifier: Apache-2.0
//
// TlsWire: how SocketStream greets, reads and writes over TLS. OpenSSL decrypts into a buffer of
// the wire, as one read may give bytes that arrived with an earlier one. With what OpenSSL and Asio
// keep, a TLS stream holds about 85 KiB.

#pragma once

#include <pv2/base/status.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "asio_types.h"
#include "plain_wire.h"

namespace pv2 {

/// Owned by the loop's thread.
class TlsWire {
 public:
  /// `clients_show_certificates`: a server refuses those that do not.
  TlsWire(LoopSocket socket, asio::ssl::context& context, bool clients_show_certificates)
      : stream_(std::move(socket), context),
        clients_show_certificates_(clients_show_certificates) {}
  [[nodiscard]] LoopSocket& socket() noexcept { return stream_.next_layer(); }

  Story<Status> greet_as_server();
  /// The server has to prove that it is `name`, a host name or an IP address.
  Story<Status> greet_as_client(std::string name);
  void begin() { buffer_ = std::make_unique<Buffer>(); }

  /// The wire has to live until `handler` is called.
  template <class Handler>
  void async_wait_for_bytes(Handler handler) {
    stream_.async_read_some(
        asio::buffer(*buffer_),
        [this, handler = std::move(handler)](error_code error, std::size_t size) mutable {
          // The other end closed the socket without a word of TLS, as our own streams do. Whether
          // anything is missing is for the frames above to say: they are checked, and answered.
          if (error == asio::ssl::error::stream_truncated) error = asio::error::eof;
          taken_ = {error, std::string_view(buffer_->data(), size)};
          handler(error);
        });
  }
  [[nodiscard]] TakenBytes take_bytes(std::span<char> /*shared*/) { return taken_; }
  template <class Handler>
  void async_write_some(std::string_view bytes, Handler handler) {
    stream_.async_write_some(asio::buffer(bytes.data(), bytes.size()), std::move(handler));
  }

 private:
  // OpenSSL reads one record at a time, which has at most 16 KiB.
  using Buffer = std::array<char, 16 * 1024>;

  /// For people, with the certificate's fault if it has one.
  [[nodiscard]] Status refusal(const error_code& error, std::string_view other_end);

  asio::ssl::stream<LoopSocket> stream_;
  bool clients_show_certificates_;
  std::unique_ptr<Buffer> buffer_;
  TakenBytes taken_{};
};

}  // namespace pv2
