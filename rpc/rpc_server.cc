// SPDX-License-Identifier: Apache-2.0
//
// Checks the options of a server, and carries its verbs to the loop's thread.

#include "pv2/rpc/rpc_server.h"

#include <fmt/format.h>
#include <pv2/base/latch.h>

#include <utility>

#include "common_limits.h"
#include "id_window.h"
#include "server_core.h"

namespace pv2 {
namespace {

constexpr std::size_t kTokenBytesMin = 16;
constexpr std::size_t kFrameLimitMin = 4096;
constexpr std::size_t kFrameLimitMax = std::size_t{1} << 30;
constexpr std::size_t kCallsLimitMax = IdWindow::kWindow / 2;

Status check(const RpcMethods& methods) {
  for (const auto& [name, handler] : methods) {
    if (name.empty() || name.size() > kMethodBytesMax) {
      return invalid_option(
          fmt::format("RpcServerOptions::methods: '{}' has {} bytes; a name has 1 to {}",
                      name.substr(0, kMethodBytesMax), name.size(), kMethodBytesMax));
    }
    if (!handler) {
      return invalid_option(fmt::format("RpcServerOptions::methods: {} has no handler", name));
    }
  }
  return {};
}

Status check(const std::vector<BearerToken>& tokens) {
  for (const BearerToken& token : tokens) {
    if (token.token.size() < kTokenBytesMin || token.token.size() > kTokenBytesMax) {
      return invalid_option(
          fmt::format("RpcServerOptions::tokens: the token of '{}' has {} bytes; it has "
                      "to have {} to {}",
                      token.owner, token.token.size(), kTokenBytesMin, kTokenBytesMax));
    }
  }
  return {};
}

Status check(const RpcLimits& limits) {
  const auto within = [](std::string_view name, std::size_t value, std::size_t least,
                         std::size_t most) -> Status {
    if (value >= least && value <= most) return {};
    return invalid_option(
        fmt::format("RpcLimits::{} is {}; it has to be {} to {}", name, value, least, most));
  };
  for (const Status& status :
       {within("connections_max", limits.connections_max, 1, 1'000'000),
        within("frame_bytes_max", limits.frame_bytes_max, kFrameLimitMin, kFrameLimitMax),
        within("calls_max", limits.calls_max, 1, kCallsLimitMax),
        within("memory_max", limits.memory_max, kFrameLimitMin, SIZE_MAX)}) {
    if (!status.ok()) return status;
  }
  for (const Duration time :
       {limits.hello_timeout, limits.frame_timeout, limits.stalled_timeout, limits.idle_timeout}) {
    if (time <= Duration::zero()) {
      return invalid_option("RpcLimits: each timeout has to be positive");
    }
  }
  return {};
}

Status check(const RpcServerOptions& options) {
  if (options.transport == nullptr) return invalid_option("RpcServerOptions::transport is not set");
  if (Status status = check(options.methods); !status.ok()) return status;
  if (Status status = check(options.tokens); !status.ok()) return status;
  return check(options.limits);
}

}  // namespace

RpcServer::RpcServer(std::shared_ptr<Transport> transport, std::shared_ptr<ServerCore> core)
    : transport_(std::move(transport)), core_(std::move(core)) {}

Result<std::unique_ptr<RpcServer>> RpcServer::open(RpcServerOptions options) {
  if (Status status = check(options); !status.ok()) return status;
  const std::shared_ptr<Transport> transport = options.transport;
  auto core = std::make_shared<ServerCore>(std::move(options));
  Status status;
  run_on_loop(*transport, [&] { status = core->listen(); });
  if (!status.ok()) return status.with_context("a server cannot listen");
  return std::unique_ptr<RpcServer>(new RpcServer(transport, std::move(core)));
}

RpcServer::~RpcServer() {
  run_on_loop(*transport_, [this] { core_->close_all(); });
}

const std::string& RpcServer::address() const noexcept { return core_->address(); }

void RpcServer::stop(Duration grace, std::function<void()> stopped) {
  transport_->post([core = core_, grace, stopped = std::move(stopped)]() mutable {
    core->stop(grace, std::move(stopped));
  });
}

void RpcServer::stop(Duration grace) {
  const auto all_closed = std::make_shared<Latch<bool>>();
  stop(grace, [all_closed] { all_closed->set(true); });
  if (transport_->has_own_thread() && !transport_->on_loop()) all_closed->wait();
}

RpcServerCounts RpcServer::counts() const { return core_->counts(); }

}  // namespace pv2
