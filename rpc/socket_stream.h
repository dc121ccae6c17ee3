// SPDX-License-Identifier: Apache-2.0
//
// SocketConnection: the reading and writing of one stream, over a wire that is plain or TLS.
// SocketStream is the end that the user holds.
//
// They are two objects because the user may drop a stream at any time, also within a call of its
// listener, while operations of the system still refer to the socket and its buffers. Those keep
// the connection alive until they have ended; is_over_ keeps them from touching anything else.
//
//      send() --> collected_ --(swap)--> sending_ --> wire        one write at a time; what is sent
//                                                                 meanwhile goes with the next one
//      wire --> the loop's read buffer --> on_bytes()

#pragma once

#include <fmt/format.h>
#include <pv2/base/assert.h>
#include <pv2/base/status.h>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "connection.h"
#include "tcp_address.h"

namespace pv2 {

// A buffer that grew beyond this is given back when it is empty: enough for a burst of calls.
inline constexpr std::size_t kBufferKept = 64 * 1024;

template <class Wire>
class SocketConnection final : public Connection,
                               public std::enable_shared_from_this<SocketConnection<Wire>> {
 public:
  SocketConnection(TcpLoop& loop, Wire wire) : loop_(loop), wire_(std::move(wire)) {}

  LoopSocket& socket() noexcept override { return wire_.socket(); }
  Story<Status> greet_as_server() override { return wire_.greet_as_server(); }
  Story<Status> greet_as_client(std::string name) override {
    return wire_.greet_as_client(std::move(name));
  }
  std::unique_ptr<Stream> make_stream() override;

  void close() noexcept override {
    is_over_ = true;
    listener_ = nullptr;
    error_code ignored;  // whatever it is, the socket is closed
    wire_.socket().close(ignored);
  }

  void start(StreamListener& listener) {
    PV2_ASSERT(listener_ == nullptr, "a stream is started once");
    if (is_over_) return;
    listener_ = &listener;
    if (!is_paused_) wait_for_bytes();
  }

  void send(std::string& bytes) {
    if (bytes.empty()) return;
    if (is_over_ || write_failed_) return bytes.clear();
    if (collected_.empty()) {
      collected_.swap(bytes);
    } else {
      collected_ += bytes;
      bytes.clear();
    }
    if (is_writing_) return;
    is_writing_ = true;
    // Not at once: what else is sent until the loop gets there goes in the same write.
    asio::post(loop_.io(), [self = this->shared_from_this()] { self->write(); });
  }
  [[nodiscard]] std::size_t unsent() const noexcept {
    return collected_.size() + sending_.size() - sent_;
  }

  void pause() { is_paused_ = true; }
  void resume() {
    if (!std::exchange(is_paused_, false) || is_over_ || listener_ == nullptr) return;
    if (reading_ == Reading::kIdle) {
      wait_for_bytes();
    } else if (reading_ == Reading::kReady) {
      reading_ = Reading::kWaiting;
      asio::post(loop_.io(), [self = this->shared_from_this()] { self->read(); });
    }
  }

  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }

 private:
  enum class Reading : std::uint8_t {
    kIdle,        // nothing is asked of the wire
    kWaiting,     // read() will be called
    kReady,       // the wire has bytes, or its end, and the stream is paused
    kDelivering,  // within on_bytes(), whose bytes may lie in the wire
  };

  void wait_for_bytes() {
    reading_ = Reading::kWaiting;
    // An error shows again when the bytes are taken.
    wire_.async_wait_for_bytes(
        [self = this->shared_from_this()](const error_code&) { self->read(); });
  }

  void read() {
    if (is_over_) return;
    if (is_paused_) {
      reading_ = Reading::kReady;
      return;
    }
    reading_ = Reading::kDelivering;
    const auto [error, bytes] = wire_.take_bytes(loop_.read_buffer());
    if (error && error != asio::error::would_block) return end(error);
    if (!error) listener_->on_bytes(bytes);
    if (is_over_) return;  // the listener has dropped the stream
    reading_ = Reading::kIdle;
    // One read for each turn: other streams come between.
    if (!is_paused_) wait_for_bytes();
  }

  void write() {
    if (is_over_) return;
    if (sent_ == sending_.size()) {
      forget_sent();
      sending_.swap(collected_);
    }
    wire_.async_write_some(
        std::string_view(sending_).substr(sent_),
        [self = this->shared_from_this()](const error_code& error, std::size_t size) {
          self->on_written(error, size);
        });
  }

  void on_written(const error_code& error, std::size_t size) {
    if (is_over_) return;
    if (error) return fail_to_write(error);
    sent_ += size;
    if (unsent() != 0) return write();
    forget_sent();
    is_writing_ = false;
    if (listener_ != nullptr) listener_->on_drained();
  }

  void forget_sent() {
    sending_.clear();
    sent_ = 0;
    if (sending_.capacity() > kBufferKept) std::string().swap(sending_);
  }

  // What the other end said before it went may still be unread, and tell why; so reading ends the
  // stream. But a stream that is paused may wait for on_drained(), which does not come any more.
  void fail_to_write(const error_code& error) {
    write_failed_ = error;
    collected_.clear();
    forget_sent();
    if (is_paused_ && listener_ != nullptr) end(error);
  }

  void end(const error_code& error) {
    const error_code cause = write_failed_ ? write_failed_ : error;
    StreamListener& listener = *listener_;
    close();
    if (cause == asio::error::eof) return listener.on_closed(Status());
    listener.on_closed(
        Status(StatusCode::kUnavailable,
               fmt::format("the connection to {} broke: {}", peer_, cause.message())));
  }

  TcpLoop& loop_;
  Wire wire_;
  std::string peer_;
  StreamListener* listener_ = nullptr;
  bool is_over_ = false;
  bool is_paused_ = false;
  bool is_writing_ = false;  // write() or on_written() will be called
  Reading reading_ = Reading::kIdle;
  error_code write_failed_;
  std::string collected_;
  std::string sending_;
  std::size_t sent_ = 0;  // of sending_
};

/// The user's end.
template <class Wire>
class SocketStream final : public Stream {
 public:
  explicit SocketStream(std::shared_ptr<SocketConnection<Wire>> connection)
      : connection_(std::move(connection)) {}
  ~SocketStream() override { connection_->close(); }

  void start(StreamListener& listener) override { connection_->start(listener); }
  void send(std::string& bytes) override { connection_->send(bytes); }
  std::size_t unsent() const noexcept override { return connection_->unsent(); }
  void pause() override { connection_->pause(); }
  void resume() override { connection_->resume(); }
  std::string peer() const override { return connection_->peer(); }

 private:
  // Shared with the operations in flight.
  const std::shared_ptr<SocketConnection<Wire>> connection_;
};

template <class Wire>
std::unique_ptr<Stream> SocketConnection<Wire>::make_stream() {
  // Errors, of a connection that is broken already, will show when it is read.
  error_code ignored;
  const tcp::endpoint peer = socket().remote_endpoint(ignored);
  peer_ = ignored ? "an end that is gone" : to_string(peer);
  socket().set_option(tcp::no_delay(true), ignored);
  wire_.begin();
  return std::make_unique<SocketStream<Wire>>(this->shared_from_this());
}

}  // namespace pv2
