// SPDX-License-Identifier: Apache-2.0
//
// The attempt is a coroutine, and its deadline a timer. Whichever is first answers: the system's
// search for a host (getaddrinfo) cannot be called off, so at the deadline the caller is told, and
// the coroutine ends when the search does.

#include "tcp_connect.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connection.h"
#include "tls_context.h"

namespace pv2 {
namespace {

class Attempt {
 public:
  Attempt(TcpLoop& loop, TlsContext* tls, TcpAddress address, Transport::Connected connected)
      : loop_(loop),
        server_name_(tls != nullptr ? tls->server_name(address.host) : std::string()),
        address_(std::move(address)),
        connected_(std::move(connected)),
        connection_(make_connection(loop, tls, LoopSocket(loop.io()))) {}

  static void begin(const std::shared_ptr<Attempt>& self, Duration timeout) {
    self->deadline_ = self->loop_.timers().call_at(
        later(self->loop_.clock().steady_now(), timeout), [self, timeout] {
          self->answer(Status(StatusCode::kDeadlineExceeded,
                              fmt::format("{} while {}, which took longer than {} ms",
                                          self->no_connection(), self->doing_, timeout / kMs)));
        });
    self->loop_.spawn(run(self));
  }

 private:
  static constexpr Duration kMs = std::chrono::milliseconds(1);

  static Story<void> run(std::shared_ptr<Attempt> self) {
    co_await asio::post(self->loop_.io(), kAwait);  // not within the caller's call
    Result<std::vector<tcp::endpoint>> endpoints = co_await self->find_host();
    if (self->is_answered()) co_return;
    if (!endpoints.ok()) co_return self->answer(endpoints.status());

    self->doing_ = "waiting for the host";
    auto [error, endpoint] =
        co_await asio::async_connect(self->connection_->socket(), *endpoints, kAwait);
    if (self->is_answered()) co_return;
    if (error) co_return self->answer(self->unavailable(error.message()));

    self->doing_ = "waiting for the TLS handshake";
    const Status greeted = co_await self->connection_->greet_as_client(self->server_name_);
    if (self->is_answered()) co_return;
    if (!greeted.ok()) co_return self->answer(self->unavailable(greeted.message()));
    self->answer(self->connection_->make_stream());
  }

  Story<Result<std::vector<tcp::endpoint>>> find_host() {
    std::vector<tcp::endpoint> endpoints;
    if (const auto ip = address_.ip()) {
      endpoints.emplace_back(*ip, address_.port);
      co_return endpoints;
    }
    try {
      LoopResolver resolver(loop_.io());
      auto [error, found] =
          co_await resolver.async_resolve(address_.host, std::to_string(address_.port), kAwait);
      if (error) co_return unavailable(error.message());
      endpoints.assign(found.begin(), found.end());
      co_return endpoints;
    } catch (const boost::system::system_error& failure) {  // the first search starts a thread
      co_return unavailable(failure.what());
    }
  }

  [[nodiscard]] std::string no_connection() const {
    return fmt::format("no connection to {}:{}", address_.host, address_.port);
  }
  [[nodiscard]] Status unavailable(std::string_view why) const {
    return Status(StatusCode::kUnavailable, fmt::format("{}: {}", no_connection(), why));
  }

  [[nodiscard]] bool is_answered() const noexcept { return connected_ == nullptr; }
  void answer(Result<std::unique_ptr<Stream>> result) {
    loop_.timers().cancel(deadline_);
    if (!result.ok()) connection_->close();
    std::exchange(connected_, nullptr)(std::move(result));
  }

  TcpLoop& loop_;
  const std::string server_name_;
  const TcpAddress address_;
  Transport::Connected connected_;  // none: answered
  const std::shared_ptr<Connection> connection_;
  TimerId deadline_{};
  std::string_view doing_ = "looking for the host";
};

}  // namespace

void tcp_connect(TcpLoop& loop, TlsContext* tls, TcpAddress address, Duration timeout,
                 Transport::Connected connected) {
  Attempt::begin(std::make_shared<Attempt>(loop, tls, std::move(address), std::move(connected)),
                 timeout);
}

}  // namespace pv2
