// SPDX-License-Identifier: Apache-2.0
//
// RawPeer: a client of an RpcWorld's server that says what it likes, and keeps what it is told.

#pragma once

#include <pv2/base/frame.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/rpc/rpc_frame.h"
#include "rpc/rpc_world.h"
#include "support/catch.h"

namespace pv2::testing {

/// Owned by one thread. Texts of `heard`: "a reply 5: RESOURCE_EXHAUSTED: ...".
class RawPeer final : public StreamListener {
 public:
  explicit RawPeer(RpcWorld& world) {
    world.transport->connect("server", std::chrono::seconds(1),
                             [this](Result<std::unique_ptr<Stream>> stream) {
                               stream_ = *std::move(stream);
                               stream_->start(*this);
                             });
    world.run();
  }
  void send(const RpcFrame& frame) {
    std::string bytes;
    append_rpc_frame(bytes, frame);
    send_bytes(bytes);
  }
  void send_bytes(std::string bytes) { stream_->send(bytes); }
  void hello() { send({.kind = FrameKind::kHello, .version = kRpcVersion}); }
  void pause() { stream_->pause(); }
  void resume() { stream_->resume(); }

  void on_bytes(std::string_view bytes) override {
    for (auto frame = read_frame(bytes); frame; frame = read_frame(bytes)) {
      const auto decoded = decode_rpc_frame(*frame);
      REQUIRE(decoded.ok());
      std::string text(to_string(decoded->kind));
      if (decoded->id != 0) text += " " + std::to_string(decoded->id);
      if (decoded->status != StatusCode::kOk) {
        text += ": " + Status(decoded->status, std::string(decoded->message)).to_string();
      }
      heard.push_back(text);
    }
  }
  void on_drained() override {}
  void on_closed(const Status&) override { is_closed = true; }

  std::vector<std::string> heard;
  bool is_closed = false;

 private:
  std::unique_ptr<Stream> stream_;
};

}  // namespace pv2::testing
