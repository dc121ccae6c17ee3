// SPDX-License-Identifier: Apache-2.0
//
// One connection per request, on one thread. Each request keeps itself alive through its pending
// callbacks; the deadline closes the socket, which ends the callbacks.

#include "cluster/line_client.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <future>
#include <istream>
#include <thread>
#include <utility>

namespace pv2 {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// One request under way. Owned by its callbacks; runs on the client's thread.
class Request : public std::enable_shared_from_this<Request> {
 public:
  Request(asio::io_context& io, std::string line, LineClient::Callback done)
      : socket_(io), deadline_(io), line_(std::move(line) + '\n'), done_(std::move(done)) {}

  void start(std::uint16_t port, std::chrono::milliseconds timeout) {
    deadline_.expires_after(timeout);
    deadline_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->finish({self->unanswered(), "no answer in time"});
    });
    socket_.async_connect(
        {asio::ip::address_v4::loopback(), port},
        [self = shared_from_this()](error_code error) { self->connected(error); });
  }

 private:
  void connected(error_code error) {
    if (error) return finish({LineAnswer::Kind::kNotSent, error.message()});
    if (finished_) return;
    // From here on bytes may be on their way, whatever the write reports.
    sent_ = true;
    asio::async_write(socket_, asio::buffer(line_),
                      [self = shared_from_this()](error_code failed, std::size_t) {
                        if (failed) self->finish({LineAnswer::Kind::kLost, failed.message()});
                      });
    asio::async_read_until(socket_, input_, '\n',
                           [self = shared_from_this()](error_code failed, std::size_t) {
                             if (failed)
                               return self->finish({LineAnswer::Kind::kLost, failed.message()});
                             std::istream stream(&self->input_);
                             std::string text;
                             std::getline(stream, text);
                             self->finish({LineAnswer::Kind::kAnswered, std::move(text)});
                           });
  }

  [[nodiscard]] LineAnswer::Kind unanswered() const {
    return sent_ ? LineAnswer::Kind::kSilent : LineAnswer::Kind::kNotSent;
  }

  void finish(LineAnswer answer) {
    if (std::exchange(finished_, true)) return;
    error_code ignored;
    socket_.close(ignored);
    deadline_.cancel();
    done_(std::move(answer));
  }

  tcp::socket socket_;
  asio::steady_timer deadline_;
  asio::streambuf input_;
  std::string line_;
  LineClient::Callback done_;
  bool sent_ = false;
  bool finished_ = false;
};

}  // namespace

class LineClient::Impl {
 public:
  explicit Impl(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  ~Impl() {
    io_.stop();
    thread_.join();
  }

  void ask(std::uint16_t port, std::string line, Callback done) {
    auto request = std::make_shared<Request>(io_, std::move(line), std::move(done));
    asio::post(io_, [request = std::move(request), port, timeout = timeout_] {
      request->start(port, timeout);
    });
  }

 private:
  const std::chrono::milliseconds timeout_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> keep_running_{io_.get_executor()};
  std::thread thread_{[this] { io_.run(); }};
};

LineClient::LineClient(std::chrono::milliseconds timeout)
    : impl_(std::make_unique<Impl>(timeout)) {}
LineClient::~LineClient() = default;

void LineClient::ask(std::uint16_t port, std::string line, Callback done) {
  impl_->ask(port, std::move(line), std::move(done));
}

LineAnswer LineClient::ask_and_wait(std::uint16_t port, std::string line) {
  auto answer = std::make_shared<std::promise<LineAnswer>>();
  std::future<LineAnswer> arrived = answer->get_future();
  ask(port, std::move(line), [answer](LineAnswer value) { answer->set_value(std::move(value)); });
  return arrived.get();
}

}  // namespace pv2
