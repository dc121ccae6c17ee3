// SPDX-License-Identifier: Apache-2.0
//
// What a client does when a limit is reached: its own, the server's, or the size of a frame.

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pv2/rpc/rpc_frame.h"
#include "rpc/raw_peer.h"
#include "rpc/rpc_world.h"
#include "support/catch.h"

namespace pv2::testing::client_limits_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Kind = CallOutcome::Kind;

/// A server that welcomes each client, sends it pings, and counts what it hears once it reads.
class PingingServer final : public StreamListener {
 public:
  PingingServer(RpcWorld& world, std::size_t pings)
      : pings_(pings),
        acceptor_(*world.transport->listen("server", [this](std::unique_ptr<Stream> stream) {
          stream_ = std::move(stream);
          stream_->start(*this);
        })) {}
  void on_bytes(std::string_view bytes) override {
    heard += bytes.size();
    if (std::exchange(welcomed_, true)) return;
    std::string frames;
    append_rpc_frame(frames, {.kind = FrameKind::kWelcome,
                              .version = kRpcVersion,
                              .calls_max = 100,
                              .frame_bytes_max = 1 << 20});
    for (std::size_t i = 0; i < pings_; ++i) {
      append_rpc_frame(frames, {.kind = FrameKind::kPing, .id = i + 1});
    }
    stream_->pause();
    stream_->send(frames);
  }
  void on_drained() override {}
  void on_closed(const Status&) override {}
  void read() { stream_->resume(); }

  std::size_t heard = 0;

 private:
  const std::size_t pings_;
  bool welcomed_ = false;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<StreamAcceptor> acceptor_;
};

}  // namespace

TEST_CASE("a client keeps a bounded number of answers to pings for a server that does not read") {
  RpcWorld world;
  PingingServer server(world, 300'000);
  const auto client = world.connect();
  const auto outcome = world.call(*client, "echo", "", {.timeout = seconds(1)});
  world.run();
  server.read();
  world.run();

  CHECK(server.heard > (1 << 20));
  CHECK(server.heard < (1 << 20) + 10'000);  // each answer has 13 bytes or more
  CHECK_FALSE(outcome->has_value());
}

TEST_CASE("a call whose time is over before it can be sent fails, and is not run") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();
  world.call(*client, "echo", "");
  world.run();
  const auto late = world.call(*client, "keep", "", {.timeout = Duration::zero()});
  world.run();

  REQUIRE(late->has_value());
  CHECK((*late)->kind == Kind::kFailed);
  CHECK((*late)->status.code() == StatusCode::kDeadlineExceeded);
  CHECK((*late)->attempts == 0);
  CHECK(world.kept.empty());
}

TEST_CASE("calls beyond bytes_max are refused, and one is taken again when another has ended") {
  RpcWorld world;
  const auto server = world.serve();
  auto options = world.client_options();
  options.bytes_max = 10'000;
  const auto client = world.connect(std::move(options));
  const std::string body(8'000, 'x');
  const auto first = world.call(*client, "keep", body);
  const auto second = world.call(*client, "keep", body);
  world.run();

  CHECK_FALSE(first->has_value());
  REQUIRE(second->has_value());
  CHECK((*second)->kind == Kind::kFailed);
  CHECK((*second)->status.code() == StatusCode::kResourceExhausted);
  CHECK((*second)->attempts == 0);
  CHECK_THAT((*second)->status.to_string(), ContainsSubstring("RpcClientOptions::bytes_max"));
  CHECK(world.kept.size() == 1);

  world.kept[0].reply("");
  world.run();
  const auto third = world.call(*client, "echo", body);
  world.run();
  REQUIRE(third->has_value());
  CHECK((*third)->kind == Kind::kOk);
}

TEST_CASE("a call that is larger than the server's frames fails, and disturbs no other") {
  RpcWorld world;
  auto options = world.server_options();
  options.limits.frame_bytes_max = 4096;
  const auto server = world.serve(std::move(options));
  const auto client = world.connect();
  const auto large = world.call(*client, "echo", std::string(4096, 'x'), {.nonce = {1, 1}});
  const auto small = world.call(*client, "echo", "x");
  world.run();

  REQUIRE(large->has_value());
  CHECK((*large)->kind == Kind::kFailed);
  CHECK((*large)->attempts == 0);
  CHECK((*large)->status.code() == StatusCode::kInvalidArgument);
  CHECK_THAT((*large)->status.to_string(), ContainsSubstring("the server takes frames of 4096"));
  REQUIRE(small->has_value());
  CHECK((*small)->kind == Kind::kOk);
  CHECK(server->counts().broken == 0);
}

TEST_CASE("an answer that is larger than the server's frames leaves the outcome unknown") {
  RpcWorld world;
  auto options = world.server_options();
  options.limits.frame_bytes_max = 4096;
  const auto server = world.serve(std::move(options));
  const auto client = world.connect();
  const auto outcome = world.call(*client, "keep", "");
  world.run();
  world.kept[0].reply(std::string(5000, 'x'));
  world.run();

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kUnknown);
  CHECK_THAT((*outcome)->status.to_string(), ContainsSubstring("larger than a frame may be"));
  CHECK(server->counts().memory == 0);
}

TEST_CASE("an answer that is larger than the client takes leaves the outcome unknown") {
  RpcWorld world;
  const auto server = world.serve();
  auto options = world.client_options();
  options.frame_bytes_max = 4096;
  const auto client = world.connect(std::move(options));
  const auto outcome = world.call(*client, "echo", std::string(5000, 'x'),
                                  {.nonce = {1, 1}, .timeout = seconds(10)});
  world.run_for(seconds(11));

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kUnknown);
  CHECK_THAT((*outcome)->status.to_string(), ContainsSubstring("4096 are allowed"));
  // Each attempt costs a connection: they are spaced as attempts to connect are.
  CHECK(client->counts().connections <= 30);
}

TEST_CASE("a client has no more calls at the server than its own calls_max") {
  RpcWorld world;
  const auto server = world.serve();
  auto options = world.client_options();
  options.calls_max = 2;
  const auto client = world.connect(std::move(options));
  std::vector<CallOutcomeSlot> outcomes;
  for (int i = 0; i < 5; ++i) outcomes.push_back(world.call(*client, "keep", std::to_string(i)));

  for (std::size_t i = 0; i < 5; ++i) {
    world.run();
    REQUIRE(world.kept.size() == std::min<std::size_t>(i + 2, 5));
    world.kept[i].reply("");
  }
  world.run();
  for (const auto& outcome : outcomes) CHECK(outcome->has_value());
}

TEST_CASE("notes to a client that does not read are dropped, and the handler is told so") {
  RpcWorld world;
  auto options = world.server_options();
  options.limits.unsent_bytes_max = 10'000;
  const auto server = world.serve(std::move(options));
  RawPeer peer(world);
  peer.hello();
  peer.send({.kind = FrameKind::kCall, .id = 1, .method = "keep"});
  world.run();
  peer.pause();
  const std::string note(1000, 'x');
  int sent = 0;
  for (int i = 0; i < 100; ++i) {
    if (world.kept[0].note(note)) ++sent;
    world.run();
  }

  CHECK(sent >= 8);
  CHECK(sent <= 10);
  CHECK(server->counts().memory < 12'000);
  peer.resume();
  world.run();
  CHECK(world.kept[0].note(note));
  CHECK_FALSE(world.kept[0].note(std::string(std::size_t{4} << 20, 'x')));
  world.kept[0].reply("");
  world.run();
  CHECK(peer.heard.back() == "a reply 1");
  CHECK(std::count(peer.heard.begin(), peer.heard.end(), "a note 1") == sent + 1);
}

TEST_CASE("a call that is cancelled before it was sent was not done") {
  RpcWorld world;
  const auto client = world.connect();  // there is no server
  std::optional<CallOutcome> outcome;
  const CallTicket ticket = client->call("keep", "", {.nonce = {1, 1}}, [&](CallOutcome told) {
    CHECK_FALSE(outcome.has_value());
    outcome = std::move(told);
  });
  if (GENERATE(false, true)) world.run();
  client->cancel(ticket);
  client->cancel(ticket);
  world.run();

  REQUIRE(outcome.has_value());
  CHECK(outcome->kind == Kind::kFailed);
  CHECK(outcome->status.code() == StatusCode::kAborted);
  CHECK(outcome->attempts == 0);
  const auto server = world.serve();
  world.run_for(seconds(5));
  CHECK(world.kept.empty());
}

TEST_CASE("a call that is cancelled while it pauses was refused, and so not done") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();
  std::optional<CallOutcome> outcome;
  const CallTicket ticket =
      client->call("keep", "", {}, [&](CallOutcome told) { outcome = std::move(told); });
  world.run();
  world.kept[0].refuse({StatusCode::kBusy, "later"});
  world.run();
  client->cancel(ticket);
  world.run_for(seconds(5));

  REQUIRE(outcome.has_value());
  CHECK(outcome->kind == Kind::kFailed);
  CHECK(outcome->attempts == 1);
  CHECK(world.kept.size() == 1);
}

TEST_CASE("a client that the server has paused is not blamed for the time of the pause") {
  RpcWorld world;
  auto options = world.server_options();
  options.limits.unsent_bytes_max = 10'000;
  options.limits.frame_timeout = seconds(5);
  options.limits.idle_timeout = seconds(8);
  options.limits.stalled_timeout = minutes(5);
  const auto server = world.serve(std::move(options));
  RawPeer peer(world);
  peer.hello();
  world.run();
  peer.pause();
  std::string calls;
  for (std::uint64_t id = 1; id <= 12; ++id) {
    append_rpc_frame(
        calls,
        {.kind = FrameKind::kCall, .id = id, .method = "echo", .body = std::string(1000, 'x')});
  }
  std::string cut;
  append_rpc_frame(cut, {.kind = FrameKind::kCall, .id = 13, .method = "echo"});
  peer.send_bytes(calls + cut.substr(0, 5));
  world.run_for(seconds(20));  // the server does not read, so it hears nothing
  peer.resume();
  world.run_for(seconds(1));
  CHECK_FALSE(peer.is_closed);

  peer.send_bytes(cut.substr(5));
  world.run();
  CHECK(peer.heard.back() == "a reply 13");
}

TEST_CASE("frames that have not arrived whole count for the server's memory") {
  RpcWorld world;
  auto options = world.server_options();
  options.limits.frame_bytes_max = 100'000;
  options.limits.memory_max = 150'000;
  const auto server = world.serve(std::move(options));
  RawPeer first(world);
  RawPeer second(world);
  std::string call;
  append_rpc_frame(
      call,
      {.kind = FrameKind::kCall, .id = 1, .method = "echo", .body = std::string(90'000, 'x')});
  for (RawPeer* peer : {&first, &second}) {
    peer->hello();
    peer->send_bytes(call.substr(0, 80'000));
    world.run();
  }

  REQUIRE_FALSE(second.heard.empty());
  CHECK_THAT(second.heard.back(), StartsWith("a go-away: RESOURCE_EXHAUSTED"));
  CHECK(second.is_closed);
  CHECK(server->counts().memory == 80'000);
  first.send_bytes(call.substr(80'000));
  world.run();
  CHECK(first.heard.back() == "a reply 1");
  CHECK(server->counts().memory == 0);
}

}  // namespace pv2::testing::client_limits_test
