// SPDX-License-Identifier: Apache-2.0
//
// Each end reads what there is and writes it, or as much, in one piece.

#include "harness/bare_echo.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace pv2::bench {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Sends back what it reads. Ends when the socket is closed.
class EchoEnd : public std::enable_shared_from_this<EchoEnd> {
 public:
  explicit EchoEnd(tcp::socket socket) : socket_(std::move(socket)) {
    socket_.set_option(tcp::no_delay(true));
  }
  void read() {
    socket_.async_read_some(asio::buffer(bytes_),
                            [self = shared_from_this()](const error_code& error, std::size_t n) {
                              if (!error) self->write(n);
                            });
  }

 private:
  void write(std::size_t size) {
    asio::async_write(socket_, asio::buffer(bytes_, size),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (!error) self->read();
                      });
  }
  tcp::socket socket_;
  std::array<char, 64 * 1024> bytes_{};
};

/// Keeps `in_flight` messages on the way.
class AskingEnd : public std::enable_shared_from_this<AskingEnd> {
 public:
  AskingEnd(tcp::socket socket, std::size_t message_bytes, ExchangeMeter& meter)
      : socket_(std::move(socket)), message_bytes_(message_bytes), meter_(meter) {
    socket_.set_option(tcp::no_delay(true));
  }
  void start(std::size_t in_flight) {
    send(in_flight);
    read();
  }

 private:
  void send(std::size_t messages) {
    const auto now = BenchClock::now();
    for (std::size_t i = 0; i < messages; ++i) sent_.push_back(now);
    waiting_ += messages;
    if (is_writing_) return;
    write();
  }
  void write() {
    is_writing_ = true;
    out_.assign(waiting_ * message_bytes_, 'x');
    waiting_ = 0;
    asio::async_write(socket_, asio::buffer(out_),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        self->is_writing_ = false;
                        if (!error && self->waiting_ != 0) self->write();
                      });
  }
  void read() {
    socket_.async_read_some(asio::buffer(bytes_),
                            [self = shared_from_this()](const error_code& error, std::size_t n) {
                              if (!error) self->take(n);
                            });
  }
  void take(std::size_t size) {
    have_ += size;
    const std::size_t messages = have_ / message_bytes_;
    have_ %= message_bytes_;
    for (std::size_t i = 0; i < messages; ++i) {
      meter_.count(sent_.front());
      sent_.pop_front();
    }
    if (messages != 0) send(messages);
    read();
  }

  tcp::socket socket_;
  const std::size_t message_bytes_;
  ExchangeMeter& meter_;
  std::deque<BenchClock::time_point> sent_;
  std::size_t waiting_ = 0;
  bool is_writing_ = false;
  std::string out_;
  std::array<char, 64 * 1024> bytes_{};
  std::size_t have_ = 0;
};

}  // namespace

class BareEcho::Impl {
 public:
  Impl(std::size_t connections, std::size_t in_flight, std::size_t message_bytes) {
    tcp::acceptor acceptor(serving_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    for (std::size_t i = 0; i < connections; ++i) {
      tcp::socket asking(asking_);
      asking.connect(acceptor.local_endpoint());
      std::make_shared<EchoEnd>(acceptor.accept())->read();
      std::make_shared<AskingEnd>(std::move(asking), message_bytes, meter_)->start(in_flight);
    }
    threads_.emplace_back([this] { serving_.run(); });
    threads_.emplace_back([this] { asking_.run(); });
  }
  ~Impl() {
    asking_.stop();
    serving_.stop();
    for (std::thread& thread : threads_) thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void begin() {
    asio::post(asking_, [this] { meter_.begin(); });
  }
  Exchanges take() {
    std::promise<Exchanges> taken;
    asio::post(asking_, [&] { taken.set_value(meter_.take()); });
    return taken.get_future().get();
  }

 private:
  ExchangeMeter meter_;
  asio::io_context serving_{1};
  asio::io_context asking_{1};
  std::vector<std::thread> threads_;
};

BareEcho::BareEcho(std::size_t connections, std::size_t in_flight, std::size_t message_bytes)
    : impl_(std::make_unique<Impl>(connections, in_flight, message_bytes)) {}
BareEcho::~BareEcho() = default;
void BareEcho::begin() { impl_->begin(); }
Exchanges BareEcho::take() { return impl_->take(); }

}  // namespace pv2::bench
