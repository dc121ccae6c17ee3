// SPDX-License-Identifier: Apache-2.0
//
// ProxyWorld: clients and a server with a FaultProxy between them, on a network in memory. Each
// end writes down the frames that it gets ("call 1", "reply 1"), and the end of its connection.

#pragma once

#include <pv2/base/clock.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/rpc/fault_proxy.h"
#include "pv2/rpc/frame_reader.h"
#include "pv2/rpc/memory_transport.h"
#include "pv2/rpc/rpc_frame.h"
#include "support/catch.h"

namespace pv2::testing {

using Heard = std::vector<std::string>;

/// The bytes of one frame.
inline std::string bytes_of(const RpcFrame& frame) {
  std::string bytes;
  append_rpc_frame(bytes, frame);
  return bytes;
}
inline std::string call_bytes(std::uint64_t id, std::string_view body = "") {
  return bytes_of({.kind = FrameKind::kCall, .id = id, .method = "append", .body = body});
}
inline std::string reply_bytes(std::uint64_t id) {
  return bytes_of({.kind = FrameKind::kReply, .id = id});
}

/// One end of a connection.
class FramePeer final : public StreamListener {
 public:
  explicit FramePeer(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {
    stream_->start(*this);
  }

  void on_bytes(std::string_view bytes) override {
    bytes_ += bytes;
    if (answers == Answers::kBytes) return;
    reader_.feed(bytes);
    for (auto next = reader_.next(); next.has_frame; next = reader_.next()) {
      const auto frame = decode_rpc_frame(next.bytes);
      REQUIRE(frame.ok());
      note(*frame);
    }
  }
  void on_drained() override {}
  void on_closed(const Status& /*why*/) override {
    heard_.emplace_back("closed");
    stream_.reset();
  }

  /// To nobody, if the connection is over.
  void send(std::string bytes) {
    if (stream_) stream_->send(bytes);
  }
  void call(std::uint64_t id) { send(call_bytes(id)); }
  void reply(std::uint64_t id) { send(reply_bytes(id)); }
  void close() { stream_.reset(); }

  enum class Answers { kNothing, kCalls, kBytes };
  /// kCalls: it replies to each call. kBytes: it does not look for frames.
  Answers answers = Answers::kNothing;

  /// What it has heard since it was asked last.
  Heard heard() { return std::exchange(heard_, {}); }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] Stream& stream() noexcept { return *stream_; }
  [[nodiscard]] bool is_open() const noexcept { return stream_ != nullptr; }

 private:
  void note(const RpcFrame& frame) {
    const bool is_call = frame.kind == FrameKind::kCall;
    const bool is_reply = frame.kind == FrameKind::kReply;
    heard_.push_back((is_call    ? "call "
                      : is_reply ? "reply "
                                 : std::string(to_string(frame.kind)) + " ") +
                     std::to_string(frame.id));
    if (is_call && answers == Answers::kCalls) reply(frame.id);
  }

  std::unique_ptr<Stream> stream_;
  FrameReader reader_{1U << 20U};
  std::string bytes_;
  Heard heard_;
};

struct ProxyWorld {
  explicit ProxyWorld(std::shared_ptr<FaultPlan> plan = nullptr, FaultProxyOptions options = {}) {
    acceptor = *transport.listen("server", [this](std::unique_ptr<Stream> stream) {
      servers.push_back(std::make_unique<FramePeer>(std::move(stream)));
      servers.back()->answers = answers;
    });
    options.transport = &transport;
    options.listen = "proxy";
    options.target = "server";
    options.plan = std::move(plan);
    auto opened = FaultProxy::open(std::move(options));
    REQUIRE(opened.ok());
    proxy = *std::move(opened);
  }

  /// A client of the proxy, connected; the last of `servers` is its server.
  FramePeer& connect() {
    std::unique_ptr<Stream> connected;
    transport.connect(proxy->address(), std::chrono::seconds(1), [&](auto stream) {
      REQUIRE(stream.ok());
      connected = *std::move(stream);
    });
    while (!connected) REQUIRE(transport.run_until_idle(1) == 1);
    clients.push_back(std::make_unique<FramePeer>(std::move(connected)));
    clients.back()->answers =
        answers == FramePeer::Answers::kBytes ? answers : FramePeer::Answers::kNothing;
    run();
    return *clients.back();
  }
  FramePeer& server() {
    REQUIRE_FALSE(servers.empty());
    return *servers.back();
  }
  void run() { transport.run_until_idle(); }
  FaultProxyCounters counters() { return proxy->counters(); }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  MemoryTransport transport{clock};
  FramePeer::Answers answers = FramePeer::Answers::kNothing;
  std::unique_ptr<StreamAcceptor> acceptor;
  std::vector<std::unique_ptr<FramePeer>> servers;
  std::vector<std::unique_ptr<FramePeer>> clients;
  std::unique_ptr<FaultProxy> proxy;
};

}  // namespace pv2::testing
