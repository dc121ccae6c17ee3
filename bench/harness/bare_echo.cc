// SPDX-License-Identifier: Apache-2.0
//
// Both ends read what there is and write what that has led to, or as much, in one piece. They
// differ in what they make of the bytes.

#include "harness/bare_echo.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace pv2::bench {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Makes of what has arrived what is to be sent.
class End {
 public:
  virtual ~End() = default;
  virtual void start(std::string& /*out*/) {}
  virtual void take(std::string_view bytes, std::string& out) = 0;
};

/// A socket and its end. Goes when the socket is closed.
class EchoSocket : public std::enable_shared_from_this<EchoSocket> {
 public:
  EchoSocket(tcp::socket socket, std::unique_ptr<End> end)
      : socket_(std::move(socket)), end_(std::move(end)) {
    socket_.set_option(tcp::no_delay(true));
  }
  void start() {
    end_->start(out_);
    write();
    read();
  }

 private:
  void read() {
    socket_.async_read_some(asio::buffer(bytes_),
                            [self = shared_from_this()](const error_code& error, std::size_t n) {
                              if (!error) self->take(n);
                            });
  }
  void take(std::size_t size) {
    end_->take({bytes_.data(), size}, out_);
    if (!is_writing_) write();
    read();
  }
  void write() {
    if (out_.empty()) return;
    is_writing_ = true;
    sending_.clear();
    sending_.swap(out_);
    asio::async_write(socket_, asio::buffer(sending_),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        self->is_writing_ = false;
                        if (!error) self->write();
                      });
  }

  tcp::socket socket_;
  const std::unique_ptr<End> end_;
  bool is_writing_ = false;
  std::string out_;
  std::string sending_;
  std::array<char, 64 * 1024> bytes_{};
};

class ByteEcho final : public End {
  void take(std::string_view bytes, std::string& out) override { out.append(bytes); }
};

/// Keeps `in_flight` messages on the way.
class ByteAsker final : public End {
 public:
  ByteAsker(std::size_t in_flight, std::size_t message_bytes, ExchangeMeter& meter)
      : in_flight_(in_flight), message_bytes_(message_bytes), meter_(meter) {}

  void start(std::string& out) override { send(in_flight_, out); }
  void take(std::string_view bytes, std::string& out) override {
    have_ += bytes.size();
    const std::size_t messages = have_ / message_bytes_;
    have_ %= message_bytes_;
    for (std::size_t i = 0; i < messages; ++i) {
      meter_.count(sent_.front());
      sent_.pop_front();
    }
    if (messages != 0) send(messages, out);
  }

 private:
  void send(std::size_t messages, std::string& out) {
    const auto now = BenchClock::now();
    for (std::size_t i = 0; i < messages; ++i) sent_.push_back(now);
    out.append(messages * message_bytes_, 'x');
  }

  const std::size_t in_flight_;
  const std::size_t message_bytes_;
  ExchangeMeter& meter_;
  std::deque<BenchClock::time_point> sent_;
  std::size_t have_ = 0;
};

/// Cuts bytes into messages that have their lengths before them.
class MessageReader {
 public:
  template <class Take>
  void feed(std::string_view bytes, const Take& take) {
    kept_.append(bytes);
    std::string_view left = kept_;
    std::uint32_t size = 0;
    while (left.size() >= sizeof size) {
      std::memcpy(&size, left.data(), sizeof size);
      if (left.size() < sizeof size + size) break;
      take(std::string(left.substr(sizeof size, size)));
      left.remove_prefix(sizeof size + size);
    }
    kept_.erase(0, kept_.size() - left.size());
  }
  static void append(std::string& out, std::string_view message) {
    const auto size = static_cast<std::uint32_t>(message.size());
    out.append(reinterpret_cast<const char*>(&size), sizeof size);
    out.append(message);
  }

 private:
  std::string kept_;
};

class MessageEcho final : public End {
 public:
  using Handler = std::function<std::string(std::string)>;
  explicit MessageEcho(Handler handler) : handler_(std::move(handler)) {}
  void take(std::string_view bytes, std::string& out) override {
    reader_.feed(bytes, [&](std::string message) {
      MessageReader::append(out, handler_(std::move(message)));
    });
  }

 private:
  const Handler handler_;
  MessageReader reader_;
};

class MessageAsker final : public End {
 public:
  MessageAsker(std::size_t in_flight, std::size_t message_bytes, ExchangeMeter& meter)
      : in_flight_(in_flight), message_bytes_(message_bytes), meter_(meter) {}

  void start(std::string& out) override {
    for (std::size_t i = 0; i < in_flight_; ++i) ask(out);
  }
  void take(std::string_view bytes, std::string& out) override {
    reader_.feed(bytes, [&](std::string message) {
      const auto answered = std::move(asked_.front());
      asked_.pop_front();
      answered(std::move(message), out);
    });
  }

 private:
  void ask(std::string& out) {
    asked_.emplace_back([this, sent = BenchClock::now()](const std::string&, std::string& next) {
      meter_.count(sent);
      ask(next);
    });
    MessageReader::append(out, std::string(message_bytes_ - sizeof(std::uint32_t), 'x'));
  }

  const std::size_t in_flight_;
  const std::size_t message_bytes_;
  ExchangeMeter& meter_;
  std::deque<std::function<void(std::string, std::string&)>> asked_;
  MessageReader reader_;
};

}  // namespace

class BareEcho::Impl {
 public:
  Impl(EchoOf what, std::size_t connections, std::size_t in_flight, std::size_t message_bytes) {
    tcp::acceptor acceptor(serving_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    for (std::size_t i = 0; i < connections; ++i) {
      tcp::socket asking(asking_);
      asking.connect(acceptor.local_endpoint());
      std::unique_ptr<End> echo = std::make_unique<ByteEcho>();
      std::unique_ptr<End> asker = std::make_unique<ByteAsker>(in_flight, message_bytes, meter_);
      if (what == EchoOf::kMessages) {
        echo = std::make_unique<MessageEcho>([](std::string message) { return message; });
        asker = std::make_unique<MessageAsker>(in_flight, message_bytes, meter_);
      }
      std::make_shared<EchoSocket>(acceptor.accept(), std::move(echo))->start();
      std::make_shared<EchoSocket>(std::move(asking), std::move(asker))->start();
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

BareEcho::BareEcho(EchoOf what, std::size_t connections, std::size_t in_flight,
                   std::size_t message_bytes)
    : impl_(std::make_unique<Impl>(what, connections, in_flight, message_bytes)) {}
BareEcho::~BareEcho() = default;
void BareEcho::begin() { impl_->begin(); }
Exchanges BareEcho::take() { return impl_->take(); }

}  // namespace pv2::bench
