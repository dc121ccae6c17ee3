// SPDX-License-Identifier: Apache-2.0
//
// Checks the options of a client, and carries its verbs to the loop's thread.

#include "pv2/rpc/rpc_client.h"

#include <fmt/format.h>
#include <pv2/base/latch.h>

#include <utility>

#include "client_core.h"
#include "common_limits.h"

namespace pv2 {
namespace {

Status check(const RpcClientOptions& options) {
  if (options.transport == nullptr) return invalid_option("RpcClientOptions::transport is not set");
  if (options.addresses.empty()) return invalid_option("RpcClientOptions::addresses is empty");
  if (options.calls_max == 0) return invalid_option("RpcClientOptions::calls_max is 0");
  if (options.frame_bytes_max < 4096) {
    return invalid_option(
        fmt::format("RpcClientOptions::frame_bytes_max is {}; it has to be at least 4096",
                    options.frame_bytes_max));
  }
  for (const auto& [name, time] :
       {std::pair("connect_timeout", options.connect_timeout),
        std::pair("attempt_timeout", options.attempt_timeout),
        std::pair("pause_min", options.pause_min), std::pair("ping_after", options.ping_after)}) {
    if (time <= Duration::zero()) {
      return invalid_option(fmt::format("RpcClientOptions::{} has to be positive", name));
    }
  }
  if (options.ping_after > std::chrono::hours(24)) {
    return invalid_option("RpcClientOptions::ping_after is more than a day");
  }
  if (options.token.size() > kTokenBytesMax) {
    return invalid_option(
        fmt::format("RpcClientOptions::token has {} bytes, and servers know tokens of {} "
                    "at most",
                    options.token.size(), kTokenBytesMax));
  }
  if (options.pause_max < options.pause_min) {
    return invalid_option("RpcClientOptions::pause_max is less than pause_min");
  }
  return {};
}

}  // namespace

RpcClient::RpcClient(std::shared_ptr<Transport> transport, std::shared_ptr<ClientCore> core)
    : transport_(std::move(transport)), core_(std::move(core)) {}

Result<std::unique_ptr<RpcClient>> RpcClient::open(RpcClientOptions options) {
  if (Status status = check(options); !status.ok()) return status;
  // A task that is posted may hold the core for longer than the transport may live.
  std::shared_ptr<Transport> transport = std::exchange(options.transport, nullptr);
  auto core = std::make_shared<ClientCore>(*transport, std::move(options));
  return std::unique_ptr<RpcClient>(new RpcClient(std::move(transport), std::move(core)));
}

RpcClient::~RpcClient() {
  run_on_loop(*transport_, [this] { core_->shut(); });
}

CallTicket RpcClient::call(std::string method, std::string body, CallOptions options,
                           CallDone done) {
  return core_->add(std::make_unique<OutgoingCall>(std::move(method), std::move(body),
                                                   std::move(options), std::move(done)));
}

CallOutcome RpcClient::call(std::string method, std::string body, CallOptions options) {
  if (!transport_->has_own_thread() || transport_->on_loop()) {
    return {.kind = CallOutcome::Kind::kFailed,
            .status = {StatusCode::kFailedPrecondition,
                       "a call that waits, on the thread that would receive the answer; use the "
                       "call with a callback"},
            .nonce = options.nonce};
  }
  const auto arrived = std::make_shared<Latch<CallOutcome>>();
  call(std::move(method), std::move(body), std::move(options),
       [arrived](CallOutcome outcome) { arrived->set(std::move(outcome)); });
  arrived->wait();
  return std::move(*arrived->value);
}

void RpcClient::cancel(CallTicket ticket) { core_->cancel(ticket); }

RpcClientCounts RpcClient::counts() const { return core_->counts(); }

}  // namespace pv2
