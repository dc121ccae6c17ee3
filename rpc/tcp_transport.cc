// SPDX-License-Identifier: Apache-2.0
//
// The transport puts the parts together: the loop, the acceptors, the attempts to connect.

#include "pv2/rpc/tcp_transport.h"

#include <fmt/format.h>
#include <pv2/base/assert.h>

#include <boost/system/system_error.hpp>
#include <utility>

#include "connection.h"
#include "plain_wire.h"
#include "socket_stream.h"
#include "tcp_acceptor.h"
#include "tcp_address.h"
#include "tcp_connect.h"
#include "tcp_loop.h"
#include "tls_context.h"

namespace pv2 {
namespace {

// Where `address` is on this machine. Names are not looked up: that would stop the loop, and a
// server should know where it listens.
Result<tcp::endpoint> where_to_listen(std::string_view address) {
  auto parsed = parse_tcp_address(address);
  if (!parsed.ok()) return parsed.status();
  if (parsed->host == "localhost") parsed->host = "127.0.0.1";
  if (const auto ip = parsed->ip()) return tcp::endpoint(*ip, parsed->port);
  return Status(StatusCode::kInvalidArgument,
                fmt::format("'{}' is no address to listen at: the host has to be a number, such as "
                            "127.0.0.1, or localhost",
                            address));
}

class TcpTransport final : public Transport {
 public:
  TcpTransport(TcpOptions options, std::unique_ptr<TlsContext> tls)
      : allow_remote_(options.allow_remote), tls_(std::move(tls)), loop_(std::move(options.log)) {}

  Status start() { return loop_.start(); }

  void post(std::function<void()> task) override { loop_.post(std::move(task)); }
  bool on_loop() const noexcept override { return loop_.on_loop(); }
  bool has_own_thread() const noexcept override { return true; }
  Clock& clock() const noexcept override { return loop_.clock(); }

  TimerId call_at(SteadyTime when, std::function<void()> task) override {
    assert_on_loop();
    return loop_.timers().call_at(when, std::move(task));
  }
  void cancel(TimerId timer) override { loop_.timers().cancel(timer); }

  Result<std::unique_ptr<StreamAcceptor>> listen(std::string_view address, Accept accept) override {
    assert_on_loop();
    PV2_ASSERT(accept != nullptr, "whoever listens takes the connections");
    const auto at = where_to_listen(address);
    if (!at.ok()) return at.status();
    if (!at->address().is_loopback() && !allow_remote_) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("listening at {} would let other machines connect; listen at "
                                "127.0.0.1, or set TcpOptions::allow_remote, and tls with it",
                                address));
    }
    if (tls_) {
      if (const Status allowed = tls_->can_listen(); !allowed.ok()) return allowed;
    }
    return TcpAcceptor::listen(loop_, tls_.get(), *at, std::move(accept));
  }

  void connect(std::string_view address, Duration timeout, Connected connected) override {
    assert_on_loop();
    PV2_ASSERT(connected != nullptr, "whoever connects takes the connection");
    auto parsed = parse_tcp_address(address);
    Status refused = parsed.status();
    if (refused.ok() && parsed->port == 0) {
      refused = Status(StatusCode::kInvalidArgument,
                       fmt::format("'{}' cannot be connected to: it has no port", address));
    }
    if (refused.ok() && tls_) refused = tls_->can_connect();
    if (!refused.ok()) {
      return post([connected = std::move(connected), refused] { connected(refused); });
    }
    tcp_connect(loop_, tls_.get(), *std::move(parsed), timeout, std::move(connected));
  }

 private:
  void assert_on_loop() const {
    PV2_ASSERT(loop_.on_loop(), "the transport is used on its loop's thread; see run_on_loop()");
  }

  const bool allow_remote_;
  const std::unique_ptr<TlsContext> tls_;  // outlives the connections that the loop destroys
  mutable TcpLoop loop_;                   // whose clock is everybody's
};

}  // namespace

std::shared_ptr<Connection> make_connection(TcpLoop& loop, TlsContext* tls, LoopSocket socket) {
  if (tls != nullptr) return tls->connection(loop, std::move(socket));
  return std::make_shared<SocketConnection<PlainWire>>(loop, PlainWire(std::move(socket)));
}

Result<std::shared_ptr<Transport>> tcp_transport(TcpOptions options) {
  std::unique_ptr<TlsContext> tls;
  if (options.tls) {
    auto made = make_tls_context(*options.tls);
    if (!made.ok()) return made.status();
    tls = *std::move(made);
  }
  try {
    auto transport = std::make_shared<TcpTransport>(std::move(options), std::move(tls));
    if (const Status started = transport->start(); !started.ok()) return started;
    return std::shared_ptr<Transport>(std::move(transport));
  } catch (const boost::system::system_error& failure) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("the loop of a transport cannot be made: {}", failure.what()));
  }
}

}  // namespace pv2
