// SPDX-License-Identifier: Apache-2.0
//
// The list of connections of a server, and its end.

#include "server_core.h"

#include <fmt/format.h>
#include <pv2/base/time.h>

#include <utility>

#include "server_connection.h"

namespace pv2 {
namespace {

// Time limits are seconds; they may be exceeded by this much. A look at 4096 connections takes less
// than 1 ms.
constexpr Duration kLookPeriod = std::chrono::milliseconds(100);

// Takes the same time wherever two texts of one length differ.
bool is_same_secret(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return different == 0;
}

}  // namespace

ServerCore::ServerCore(RpcServerOptions options)
    : transport_(options.transport.get()),
      methods_(std::move(options.methods)),
      tokens_(std::move(options.tokens)),
      limits_(options.limits),
      log_(options.log ? std::move(options.log) : default_log_sink()),
      address_(std::move(options.address)) {}

Status ServerCore::listen() {
  auto acceptor =
      transport_->listen(address_, [self = weak_from_this()](std::unique_ptr<Stream> stream) {
        if (const auto core = self.lock()) core->accept(std::move(stream));
      });
  if (!acceptor.ok()) return acceptor.status();
  acceptor_ = std::move(*acceptor);
  address_ = acceptor_->address();
  look_later();
  return {};
}

void ServerCore::accept(std::unique_ptr<Stream> stream) {
  count(accepted_);
  // Those that are told to go away linger; a crowd of them is not even told.
  if (connections_.size() >= 2 * limits_.connections_max) return count(turned_away);
  const std::uint64_t number = accepted_.load(std::memory_order_relaxed);
  std::shared_ptr<ServerConnection> connection;
  try {
    connection = std::make_shared<ServerConnection>(shared_from_this(), std::move(stream), number);
    connections_.emplace(number, connection);
    connections_now_.store(connections_.size(), std::memory_order_relaxed);
    connection->start();
    if (connections_.size() <= limits_.connections_max) return;
    connection->finish({StatusCode::kResourceExhausted,
                        fmt::format("this server serves {} connections at a time; try again "
                                    "later, or another server",
                                    limits_.connections_max)});
  } catch (const std::exception&) {  // there is no memory, and the others go on
    if (connection) connection->close(no_memory_);
  }
  count(turned_away);
}

void ServerCore::remove(ServerConnection& connection) {
  connections_.erase(connection.number());
  connections_now_.store(connections_.size(), std::memory_order_relaxed);
  tell_if_stopped();
}

// In the order in which they came. What a visit throws closes its connection. It may remove
// connections, so the next one is looked up each time; a list of all would need memory.
template <class Visit>
void ServerCore::for_each_connection(const Visit& visit) {
  for (auto at = connections_.begin(); at != connections_.end();) {
    const auto [number, connection] = *at;
    connection->guarded([&, &connection = connection] { visit(*connection); });
    at = connections_.upper_bound(number);
  }
}

void ServerCore::look_later() {
  look_timer_ = transport_->call_at(now() + kLookPeriod, [self = weak_from_this()] {
    if (const auto core = self.lock()) core->look();
  });
}

void ServerCore::look() {
  const SteadyTime now_is = now();
  for_each_connection([now_is](ServerConnection& connection) { connection.look(now_is); });
  if (!is_stopping_ || !connections_.empty()) look_later();
}

void ServerCore::stop(Duration grace, std::function<void()> stopped) {
  stopped_.push_back(std::move(stopped));
  if (!is_stopping_) {
    is_stopping_ = true;
    acceptor_.reset();
    const Status why(StatusCode::kStopping, "the server is stopping");
    for_each_connection([&](ServerConnection& connection) { connection.finish(why); });
    grace_timer_ = transport_->call_at(later(now(), grace), [self = weak_from_this()] {
      if (const auto core = self.lock()) core->close_all();
    });
  }
  tell_if_stopped();
}

void ServerCore::close_all() {
  is_stopping_ = true;
  acceptor_.reset();
  transport_->cancel(look_timer_);
  transport_->cancel(grace_timer_);
  const Status why(StatusCode::kUnavailable, "the server has closed the connection");
  for_each_connection([&](ServerConnection& connection) { connection.close(why); });
  tell_if_stopped();
}

void ServerCore::tell_if_stopped() {
  if (!is_stopping_ || !connections_.empty()) return;
  transport_->cancel(grace_timer_);
  for (const auto& stopped : std::exchange(stopped_, {})) {
    if (stopped) guard("the end of a stop", stopped);
  }
}

std::optional<std::string_view> ServerCore::owner_of(std::string_view token) const noexcept {
  if (tokens_.empty()) return std::string_view();
  std::optional<std::string_view> owner;
  for (const BearerToken& known : tokens_) {
    if (is_same_secret(known.token, token)) owner = known.owner;
  }
  return owner;
}

const RpcMethods::value_type* ServerCore::find(std::string_view method) const {
  const auto found = methods_.find(method);
  return found == methods_.end() ? nullptr : &*found;
}

void ServerCore::log_thrown(std::string_view what, std::string_view thrown) const noexcept {
  try {
    log(log_, LogLevel::kError, fmt::format("rpc: {} threw: {}", what, thrown));
  } catch (...) {
    log(log_, LogLevel::kError,
        "rpc: a function of the host threw, and there is no memory to say what");
  }
}

RpcServerCounts ServerCore::counts() const {
  return {.connections = connections_now_.load(std::memory_order_relaxed),
          .calls_in_flight = calls_in_flight.load(std::memory_order_relaxed),
          .memory = memory.load(std::memory_order_relaxed),
          .accepted = accepted_.load(std::memory_order_relaxed),
          .turned_away = turned_away.load(std::memory_order_relaxed),
          .broken = broken.load(std::memory_order_relaxed),
          .calls = calls.load(std::memory_order_relaxed),
          .refused = refused.load(std::memory_order_relaxed),
          .repeated = repeated.load(std::memory_order_relaxed)};
}

}  // namespace pv2
