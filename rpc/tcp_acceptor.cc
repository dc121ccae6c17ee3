// SPDX-License-Identifier: Apache-2.0
//
// One coroutine accepts, and one for each new connection greets. A peer that connects and then says
// nothing holds up only itself: its handshake ends at a deadline, or when too many others have
// come after it.

#include "tcp_acceptor.h"

#include <fmt/format.h>

#include <boost/asio/error.hpp>
#include <chrono>
#include <list>
#include <utility>

#include "connection.h"
#include "rare_log.h"

namespace pv2 {
namespace {

// How long no connection is accepted when the system has no descriptor or memory for one. Others
// may be closed meanwhile; those who want to connect wait in the kernel's queue.
constexpr Duration kPauseAfterError = std::chrono::milliseconds(100);

bool concerns_one_peer(const error_code& error) {
  return error == asio::error::connection_aborted || error == asio::error::interrupted ||
         error == asio::error::try_again;
}

Status listen_failure(const tcp::endpoint& at, const error_code& error) {
  const StatusCode code = error == asio::error::address_in_use ? StatusCode::kAlreadyExists
                          : error == boost::system::errc::address_not_available
                              ? StatusCode::kInvalidArgument
                              : StatusCode::kIoError;
  return Status(code, fmt::format("listening at {} failed: {}", to_string(at), error.message()));
}

}  // namespace

class TcpAcceptor::Listening : public std::enable_shared_from_this<Listening> {
 public:
  Listening(TcpLoop& loop, TlsContext* tls, Transport::Accept accept, GreetingLimits limits)
      : loop_(loop), tls_(tls), accept_(std::move(accept)), limits_(limits), pause_(loop.io()) {}

  error_code open(const tcp::endpoint& at) {
    error_code error;
    (void)acceptor_.open(at.protocol(), error);
    if (!error) (void)acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) (void)acceptor_.bind(at, error);
    if (!error) (void)acceptor_.listen(asio::socket_base::max_listen_connections, error);
    return error;
  }
  [[nodiscard]] std::string address() const {
    error_code ignored;  // a socket that listens has an address
    return to_string(acceptor_.local_endpoint(ignored));
  }

  static Story<void> accept_all(std::shared_ptr<Listening> self) {
    while (self->acceptor_.is_open()) {
      auto [error, socket] = co_await self->acceptor_.async_accept(kAwait);
      if (!self->acceptor_.is_open()) break;
      if (!error) {
        self->loop_.spawn(greet(self, make_connection(self->loop_, self->tls_, std::move(socket))));
      } else if (!concerns_one_peer(error)) {
        self->log_.warn(fmt::format("accepting connections at {} failed, and is tried again: {}",
                                    self->address(), error.message()));
        self->pause_.expires_after(kPauseAfterError);
        co_await self->pause_.async_wait(kAwait);
      }
    }
  }

  // A coroutine that pauses finds it closed when the pause is over.
  void close() {
    error_code ignored;  // whatever it is, the socket is closed
    (void)acceptor_.close(ignored);
    for (const auto& connection : greeting_) connection->close();
  }

 private:
  static Story<void> greet(std::shared_ptr<Listening> self,
                           std::shared_ptr<Connection> connection) {
    if (self->greeting_.size() >= self->limits_.count) self->greeting_.front()->close();
    const auto at = self->greeting_.insert(self->greeting_.end(), connection);
    const TimerId deadline =
        self->loop_.timers().call_at(later(self->loop_.clock().steady_now(), self->limits_.time),
                                     [connection] { connection->close(); });
    const Status greeted = co_await connection->greet_as_server();
    self->loop_.timers().cancel(deadline);
    self->greeting_.erase(at);
    if (!self->acceptor_.is_open()) co_return;
    if (!greeted.ok()) {
      self->log_.warn(
          fmt::format("a connection at {} was refused: {}", self->address(), greeted.message()));
    } else if (connection->socket().is_open()) {  // it may have been closed in the last moment
      self->accept_(connection->make_stream());
    }
  }

  TcpLoop& loop_;
  TlsContext* const tls_;
  const Transport::Accept accept_;
  const GreetingLimits limits_;
  LoopAcceptor acceptor_{loop_.io()};
  LoopTimer pause_;
  RareLog log_{loop_.log_sink(), loop_.clock()};
  std::list<std::shared_ptr<Connection>> greeting_;  // the oldest first
};

Result<std::unique_ptr<StreamAcceptor>> TcpAcceptor::listen(TcpLoop& loop, TlsContext* tls,
                                                            const tcp::endpoint& at,
                                                            Transport::Accept accept,
                                                            GreetingLimits limits) {
  const auto listening = std::make_shared<Listening>(loop, tls, std::move(accept), limits);
  if (const error_code error = listening->open(at)) return listen_failure(at, error);
  loop.spawn(Listening::accept_all(listening));
  return std::unique_ptr<StreamAcceptor>(
      std::make_unique<TcpAcceptor>(listening, listening->address()));
}

TcpAcceptor::~TcpAcceptor() { listening_->close(); }

}  // namespace pv2
