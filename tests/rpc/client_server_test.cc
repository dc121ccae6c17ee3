// SPDX-License-Identifier: Apache-2.0
//
// A client and a server on a network in memory: what becomes of a call, whatever happens to its
// attempts, and what a server does with peers that keep no rules.

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pv2/rpc/nonce_source.h"
#include "pv2/rpc/rpc_frame.h"
#include "rpc/raw_peer.h"
#include "rpc/rpc_world.h"
#include "support/catch.h"

namespace pv2::testing::client_server_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Kind = CallOutcome::Kind;

}  // namespace

TEST_CASE("a call is answered") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();

  const auto outcome = world.call(*client, "echo", "hello");
  world.run();

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kOk);
  CHECK((*outcome)->body == "hello");
  CHECK((*outcome)->attempts == 1);
  CHECK(server->counts().calls_in_flight == 0);
  CHECK(server->counts().memory == 0);
}

TEST_CASE("a handler sees what goes with a call") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();
  const WallTime until = world.clock->wall_now() + minutes(5);

  world.call(*client, "keep", "body",
             {.nonce = {3, 4},
              .expires_at = until,
              .session = {.session = 5, .number = 6, .first_unacked = 2}});
  world.run();

  REQUIRE(world.kept.size() == 1);
  const IncomingCall& call = world.kept[0];
  CHECK(call.method() == "keep");
  CHECK(call.body() == "body");
  CHECK(call.nonce() == Nonce{3, 4});
  CHECK(call.expires_at() == until);
  CHECK(call.session().session == 5);
  CHECK(call.session().number == 6);
  CHECK(call.session().first_unacked == 2);
  CHECK(call.deadline() == world.clock->steady_now() + seconds(2));
  CHECK(call.caller().empty());
}

TEST_CASE(
    "N-06: a call that may have been run ends as unknown, and one that was never sent as failed") {
  RpcWorld world;
  auto server = world.serve();
  const auto client = world.connect();

  const auto sent = world.call(*client, "keep", "", {.nonce = {1, 1}, .timeout = seconds(10)});
  world.run_for(seconds(11));
  REQUIRE(sent->has_value());
  CHECK((*sent)->kind == Kind::kUnknown);
  CHECK((*sent)->nonce == Nonce{1, 1});
  CHECK((*sent)->attempts == 5);
  CHECK((*sent)->status.code() == StatusCode::kDeadlineExceeded);

  world.kept.clear();
  server.reset();
  world.run_for(seconds(1));
  const auto unsent = world.call(*client, "keep", "", {.nonce = {1, 2}, .timeout = seconds(10)});
  world.run_for(seconds(11));
  REQUIRE(unsent->has_value());
  CHECK((*unsent)->kind == Kind::kFailed);
  CHECK((*unsent)->attempts == 0);
}

TEST_CASE("N-03: all attempts of a call carry its nonce") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();

  const auto outcome = world.call(*client, "keep", "", {.nonce = {8, 9}, .timeout = minutes(1)});
  world.run_for(seconds(9));
  REQUIRE(world.kept.size() == 5);
  for (const IncomingCall& call : world.kept) CHECK(call.nonce() == Nonce{8, 9});

  world.kept.back().reply("done");
  world.run();
  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kOk);
  CHECK((*outcome)->attempts == 5);
}

TEST_CASE("a call without a nonce that may have been run is not sent again") {
  RpcWorld world;
  auto server = world.serve();
  const auto client = world.connect();

  const auto outcome = world.call(*client, "keep", "", {.timeout = minutes(1)});
  world.run_for(seconds(20));
  CHECK(world.kept.size() == 1);

  world.kept.clear();
  world.run();
  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kUnknown);
  CHECK((*outcome)->status.code() == StatusCode::kUnknownOutcome);
}

TEST_CASE("a refusal is no outcome: the call goes again") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();

  const auto outcome = world.call(*client, "keep", "");
  world.run();
  world.kept.back().refuse({StatusCode::kUnavailable, "not now"});
  world.run_for(seconds(1));
  REQUIRE(world.kept.size() == 2);
  world.kept.back().reply("now");
  world.run();

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kOk);
}

TEST_CASE("a refusal for good fails a call whose attempts were all refused, and no other") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();
  const bool was_lost = GENERATE(false, true);

  const auto outcome = world.call(*client, "keep", "", {.nonce = {1, 1}});
  world.run();
  if (was_lost) world.run_for(milliseconds(2100));
  world.kept.back().refuse({StatusCode::kKeyReused, "used for something else"});
  world.run();

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == (was_lost ? Kind::kUnknown : Kind::kFailed));
  CHECK((*outcome)->status.code() == StatusCode::kKeyReused);
}

TEST_CASE("a refusal leaves a resumed call unknown") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();

  const auto outcome = world.call(*client, "keep", "", {.nonce = {1, 1}, .resumed = true});
  world.run();
  world.kept.back().refuse({StatusCode::kExpired, "forgotten"});
  world.run();

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kUnknown);
}

TEST_CASE("a definite failure is an outcome") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();

  const auto outcome = world.call(*client, "keep", "", {.nonce = {1, 1}});
  world.run_for(seconds(3));
  world.kept.back().fail({StatusCode::kFailedPrecondition, "the account is empty"});
  world.run();

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kFailed);
  CHECK((*outcome)->status.message() == "the account is empty");
}

TEST_CASE("a call goes on over a server that restarts") {
  RpcWorld world;
  auto server = world.serve();
  const auto client = world.connect();

  const auto outcome = world.call(*client, "keep", "", {.nonce = {1, 1}, .timeout = minutes(1)});
  world.run();
  server.reset();
  world.run_for(seconds(5));
  CHECK_FALSE(outcome->has_value());
  server = world.serve();
  world.run_for(seconds(3));
  REQUIRE(world.kept.size() >= 2);
  world.kept.back().reply("again");
  world.run();

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kOk);
}

TEST_CASE("a client goes to the next address when a server stops, and loses no call") {
  RpcWorld world;
  auto first = world.serve();
  auto options = world.server_options();
  options.address = "second";
  const auto second = world.serve(std::move(options));
  auto client_options = world.client_options();
  client_options.addresses = {"server", "second"};
  const auto client = world.connect(std::move(client_options));

  const auto slow = world.call(*client, "keep", "slow", {.nonce = {1, 1}});
  world.run();
  bool has_stopped = false;
  first->stop(seconds(10), [&] { has_stopped = true; });
  world.run();
  const auto fresh = world.call(*client, "echo", "fresh");
  world.run();
  REQUIRE(fresh->has_value());
  CHECK((*fresh)->kind == Kind::kOk);
  CHECK(second->counts().calls == 1);
  CHECK_FALSE(has_stopped);

  world.kept.back().reply("done by the first");
  world.run();
  REQUIRE(slow->has_value());
  CHECK((*slow)->body == "done by the first");
  CHECK(has_stopped);
}

TEST_CASE("a server that stops gives its calls the grace, and no more") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();
  world.call(*client, "keep", "", {.nonce = {1, 1}});
  world.run();

  bool has_stopped = false;
  server->stop(seconds(10), [&] { has_stopped = true; });
  world.run_for(seconds(9));
  CHECK_FALSE(has_stopped);
  world.run_for(seconds(2));
  CHECK(has_stopped);
  CHECK(server->counts().connections == 0);
}

TEST_CASE("a handler that waits hears why nobody waits for it any more") {
  RpcWorld world;
  auto server = world.serve();
  const auto client = world.connect();
  std::vector<StatusCode> heard;
  const auto listen = [&] {
    world.run();
    world.kept.back().on_cancel([&heard](const Status& why) { heard.push_back(why.code()); });
  };

  SECTION("the client cancels") {
    auto slot = std::make_shared<std::optional<CallOutcome>>();
    const CallTicket ticket = client->call(
        "keep", "", {}, [slot](CallOutcome outcome) { slot->emplace(std::move(outcome)); });
    listen();
    client->cancel(ticket);
    world.run();
    CHECK(heard == std::vector{StatusCode::kAborted});
    REQUIRE(slot->has_value());
    CHECK((*slot)->kind == Kind::kUnknown);
    CHECK((*slot)->status.code() == StatusCode::kAborted);
  }
  SECTION("the attempt is late") {
    world.call(*client, "keep", "", {.nonce = {1, 1}});
    listen();
    world.run_for(milliseconds(2200));
    REQUIRE(heard.size() == 1);
    CHECK(world.kept.size() == 2);
  }
  SECTION("the connection is lost") {
    world.call(*client, "keep", "", {.nonce = {1, 1}});
    listen();
    server.reset();
    CHECK(heard == std::vector{StatusCode::kUnavailable});
  }
  SECTION("the server stops") {
    world.call(*client, "keep", "", {.nonce = {1, 1}});
    listen();
    server->stop(seconds(1), [] {});
    world.run();
    CHECK(heard == std::vector{StatusCode::kStopping});
  }
  SECTION("it was cancelled before the handler asked") {
    const auto ticket = client->call("keep", "", {}, [](CallOutcome) {});
    world.run();
    client->cancel(ticket);
    world.run();
    world.kept.back().on_cancel([&heard](const Status& why) { heard.push_back(why.code()); });
    CHECK(heard == std::vector{StatusCode::kAborted});
  }
  SECTION("the server has stopped before the handler asked") {
    world.call(*client, "keep", "", {.nonce = {1, 1}});
    world.run();
    server->stop(seconds(1), [] {});
    world.run();
    world.kept.back().on_cancel([&heard](const Status& why) { heard.push_back(why.code()); });
    CHECK(heard == std::vector{StatusCode::kStopping});
  }
  SECTION("the connection is gone before the handler asked") {
    world.call(*client, "keep", "", {.nonce = {1, 1}});
    world.run();
    server.reset();
    world.kept.back().on_cancel([&heard](const Status& why) { heard.push_back(why.code()); });
    CHECK(heard == std::vector{StatusCode::kUnavailable});
  }
  SECTION("a second function replaces the first") {
    const CallTicket ticket = client->call("keep", "", {}, [](CallOutcome) {});
    listen();
    world.kept.back().on_cancel([&heard](const Status&) { heard.push_back(StatusCode::kOk); });
    client->cancel(ticket);
    world.run();
    CHECK(heard == std::vector{StatusCode::kOk});
  }
}

TEST_CASE("a call that was cancelled and is answered then counts no more") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();
  const bool has_asked = GENERATE(true, false);
  const CallTicket ticket = client->call("keep", "body", {}, [](CallOutcome) {});
  world.run();
  if (has_asked) world.kept.back().on_cancel([](const Status&) {});
  client->cancel(ticket);
  world.run();
  CHECK(server->counts().calls_in_flight == 1);
  world.kept.back().reply("");
  world.run();

  CHECK(server->counts().calls_in_flight == 0);
  CHECK(server->counts().memory == 0);
}

TEST_CASE("an answer may destroy its own call, which the function to cancel it owns") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();
  const auto outcome = world.call(*client, "keep", "");
  world.run();
  const auto call = std::make_shared<IncomingCall>(std::move(world.kept.back()));
  world.kept.clear();
  IncomingCall* const only = call.get();
  call->on_cancel([owner = call](const Status&) {});
  const std::weak_ptr<IncomingCall> seen = call;
  const_cast<std::shared_ptr<IncomingCall>&>(call).reset();

  only->reply("answer");
  CHECK(seen.expired());
  world.run();
  REQUIRE(outcome->has_value());
  CHECK((*outcome)->body == "answer");
}

TEST_CASE("the function of one call may answer another, which then hears nothing") {
  RpcWorld world;
  auto server = world.serve();
  RawPeer peer(world);
  peer.hello();
  for (const std::uint64_t id : {1, 2}) {
    peer.send({.kind = FrameKind::kCall, .id = id, .method = "keep", .timeout_us = 1'000'000});
  }
  world.run();
  REQUIRE(world.kept.size() == 2);
  int heard = 0;
  const bool replaces = GENERATE(false, true);
  for (const std::size_t i : {0, 1}) {
    world.kept[i].on_cancel([&, i](const Status&) {
      ++heard;
      IncomingCall& other = world.kept[1 - i];
      if (replaces) return other.on_cancel([&](const Status&) { ++heard; });
      other.reply("");
    });
  }
  SECTION("the deadline passes") { world.run_for(seconds(2)); }
  SECTION("the server stops") {
    server->stop(seconds(1), [] {});
    world.run();
  }
  SECTION("the connection is gone") { server.reset(); }
  CHECK(heard == (replaces ? 2 : 1));
}

TEST_CASE("a call knows its names until it is destroyed or moved from") {
  RpcWorld world;
  auto options = world.server_options();
  options.tokens = {{.token = "0123456789abcdef", .owner = "anna"}};
  auto server = world.serve(std::move(options));
  auto client_options = world.client_options();
  client_options.token = "0123456789abcdef";
  auto client = world.connect(std::move(client_options));
  world.call(*client, "keep", "body");
  world.run();
  IncomingCall call = std::move(world.kept.back());
  world.kept.clear();
  call.reply("");
  world.run();
  client.reset();
  server.reset();

  CHECK(call.method() == "keep");
  CHECK(call.caller() == "anna");
  IncomingCall other = std::move(call);
  CHECK(other.method() == "keep");
  CHECK(call.method().empty());  // NOLINT(bugprone-use-after-move): that it is empty is promised
  CHECK(call.caller().empty());
}

TEST_CASE("a call that each server has refused may be sent for as long as its time") {
  RpcWorld world;
  bool is_full = true;
  auto options = world.server_options();
  options.methods["submit"] = [&](IncomingCall call) {
    if (is_full) return call.refuse({StatusCode::kResourceExhausted, "full"});
    call.reply("done");
  };
  const auto server = world.serve(std::move(options));
  const auto client = world.connect();
  const auto outcome =
      world.call(*client, "submit", "", {.nonce = {1, 1}, .timeout = Duration::max()});
  world.run_for(std::chrono::minutes(40));
  CHECK(!outcome->has_value());
  is_full = false;
  world.run_for(seconds(5));

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->body == "done");
}

TEST_CASE("a call whose nonce stays is sent for as long as its time, and another one is not") {
  RpcWorld world;
  const auto server = world.serve();  // nothing answers "keep"
  const auto client = world.connect();
  const bool stays = GENERATE(false, true);
  const auto outcome =
      world.call(*client, "keep", "",
                 {.nonce = {1, 1}, .nonce_stays = stays, .timeout = std::chrono::minutes(60)});

  world.run_for(std::chrono::minutes(59));
  CHECK(outcome->has_value() != stays);
  world.kept.clear();
  world.run_for(std::chrono::minutes(2));

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == CallOutcome::Kind::kUnknown);
  CHECK((*outcome)->status.code() ==
        (stays ? StatusCode::kDeadlineExceeded : StatusCode::kExpired));
}

TEST_CASE("a handler that waits hears that the deadline has passed, though no cancel came") {
  RpcWorld world;
  const auto server = world.serve();
  RawPeer peer(world);
  peer.hello();
  peer.send({.kind = FrameKind::kCall, .id = 1, .method = "keep", .timeout_us = 1'000'000});
  world.run();
  std::vector<StatusCode> heard;
  world.kept.back().on_cancel([&heard](const Status& why) { heard.push_back(why.code()); });

  world.run_for(milliseconds(900));
  CHECK(heard.empty());
  world.run_for(milliseconds(300));
  CHECK(heard == std::vector{StatusCode::kDeadlineExceeded});
}

TEST_CASE("ids of calls at the end of their range are ids like others") {
  RpcWorld world;
  const auto server = world.serve();
  RawPeer peer(world);
  peer.hello();
  const std::uint64_t last = UINT64_MAX;
  for (const std::uint64_t id : {last - 5000, last - 10, last, last, last - 1, std::uint64_t{1}}) {
    peer.send({.kind = FrameKind::kCall, .id = id, .method = "echo"});
  }
  world.run();

  CHECK(server->counts().calls == 4);
  CHECK(server->counts().repeated == 2);
}

TEST_CASE("a client that takes no answers cannot make the server keep more than its memory") {
  RpcWorld world;
  auto options = world.server_options();
  options.limits.memory_max = 100'000;
  options.limits.unsent_bytes_max = 10'000;
  const auto server = world.serve(std::move(options));
  const auto client = world.connect();
  RawPeer peer(world);
  peer.hello();
  world.run();
  peer.pause();
  for (std::uint64_t id = 1; id <= 100; ++id) {
    peer.send({.kind = FrameKind::kCall, .id = id, .method = "keep"});
  }
  world.run();
  REQUIRE(world.kept.size() == 100);
  for (IncomingCall& call : world.kept) call.reply(std::string(10'000, 'x'));
  CHECK(server->counts().memory <= 110'000);
  world.run();

  CHECK(server->counts().memory == 0);
  CHECK(server->counts().broken == 1);
  CHECK(server->counts().connections == 0);
  const auto outcome = world.call(*client, "echo", "still here");
  world.run();
  REQUIRE(outcome->has_value());
  CHECK((*outcome)->ok());
}

TEST_CASE("a server that stops waits for its clients to leave, and not for those that do not") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();
  world.call(*client, "echo", "");
  RawPeer peer(world);
  peer.hello();
  world.run();
  server->stop(minutes(1), nullptr);
  world.run();
  CHECK(server->counts().connections == 1);  // a client leaves when it is told to
  peer.send({.kind = FrameKind::kCall, .id = 1, .method = "echo"});
  world.run();
  CHECK_THAT(peer.heard.back(), StartsWith("a reply 1: STOPPING"));
  world.run_for(milliseconds(1200));
  CHECK(server->counts().connections == 0);
  CHECK(peer.is_closed);
}

TEST_CASE("a nonce without a promise is not sent when its server may have forgotten it") {
  RpcWorld world;
  auto server = world.serve();
  const auto client = world.connect();
  const auto outcome = world.call(*client, "keep", "", {.nonce = {1, 1}, .timeout = minutes(60)});
  world.run_for(seconds(5));
  server.reset();
  world.run_for(minutes(16));
  world.kept.clear();
  server = world.serve();
  world.run_for(seconds(5));

  CHECK(world.kept.empty());
  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kUnknown);
  CHECK((*outcome)->status.code() == StatusCode::kExpired);
}

TEST_CASE("a call without a method fails where it is made, and disturbs no other") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();
  const auto good = world.call(*client, "echo", "x");
  const auto bad =
      world.call(*client, GENERATE(std::string(), std::string(257, 'm')), "", {.nonce = {1, 1}});
  world.run();

  REQUIRE(bad->has_value());
  CHECK((*bad)->kind == Kind::kFailed);
  CHECK((*bad)->status.code() == StatusCode::kInvalidArgument);
  REQUIRE(good->has_value());
  CHECK((*good)->ok());
  CHECK(server->counts().broken == 0);
}

TEST_CASE("an attempt has some time, whatever the caller says") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();
  const auto outcome = world.call(
      *client, "keep", "",
      {.nonce = {1, 1}, .timeout = seconds(1), .attempt_timeout = Duration(GENERATE(0, -1))});
  world.run_for(seconds(2));

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kUnknown);
  CHECK(world.kept.size() < 20);
}

TEST_CASE("a client hears what a call says before its answer") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();
  std::vector<std::string> notes;

  const auto outcome = world.call(
      *client, "keep", "", {.on_note = [&](std::string_view note) { notes.emplace_back(note); }});
  world.run();
  CHECK(world.kept.back().note("half"));
  CHECK(world.kept.back().note("nearly"));
  world.kept.back().reply("all");
  world.run();

  CHECK(notes == std::vector<std::string>{"half", "nearly"});
  CHECK((*outcome)->body == "all");
}

TEST_CASE("a method that is not there is refused by name") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();

  const auto outcome = world.call(*client, "ekho", "");
  world.run();

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kFailed);
  CHECK_THAT((*outcome)->status.to_string(), ContainsSubstring("'ekho'"));
}

TEST_CASE("what a handler throws is logged, and leaves the outcome unknown") {
  RpcWorld world;
  auto options = world.server_options();
  options.methods["throw"] = [](IncomingCall) { throw std::runtime_error("no disk"); };
  const auto server = world.serve(std::move(options));
  const auto client = world.connect();

  const auto outcome = world.call(*client, "throw", "");
  world.run();

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kUnknown);
  REQUIRE(world.logged.size() == 1);
  CHECK_THAT(world.logged[0], ContainsSubstring("no disk"));
}

TEST_CASE("nobody gets in without a token where one is asked for") {
  RpcWorld world;
  auto options = world.server_options();
  options.tokens = {{.token = "0123456789abcdef", .owner = "anna"}};
  const auto server = world.serve(std::move(options));

  auto with = world.client_options();
  SECTION("with the token") {
    with.token = "0123456789abcdef";
    const auto client = world.connect(std::move(with));
    world.call(*client, "keep", "");
    world.run();
    REQUIRE(world.kept.size() == 1);
    CHECK(world.kept[0].caller() == "anna");
  }
  SECTION("with another one, or none") {
    with.token = GENERATE("", "0123456789abcdeF", "0123456789abcdef0");
    const auto client = world.connect(std::move(with));
    const auto outcome = world.call(*client, "keep", "");
    world.run();
    REQUIRE(outcome->has_value());
    CHECK((*outcome)->kind == Kind::kFailed);
    CHECK((*outcome)->status.code() == StatusCode::kUnauthenticated);
    CHECK(world.kept.empty());
    CHECK(server->counts().turned_away == 1);
  }
}

TEST_CASE("a call that the network repeats reaches its handler once") {
  RpcWorld world;
  const auto server = world.serve();
  RawPeer peer(world);
  peer.hello();
  for (int i = 0; i < 3; ++i) peer.send({.kind = FrameKind::kCall, .id = 1, .method = "keep"});
  world.run();

  CHECK(world.kept.size() == 1);
  CHECK(server->counts().repeated == 2);
}

TEST_CASE("a peer that breaks the protocol is told why, and loses its connection alone") {
  RpcWorld world;
  auto options = world.server_options();
  options.limits.frame_bytes_max = 4096;
  const auto server = world.serve(std::move(options));
  const auto client = world.connect();
  RawPeer peer(world);

  SECTION("no hello") { peer.send({.kind = FrameKind::kCall, .id = 1, .method = "echo"}); }
  SECTION("another version") { peer.send({.kind = FrameKind::kHello, .version = 99}); }
  SECTION("no frames at all") { peer.send_bytes("GET / HTTP/1.1\r\nHost: example\r\n\r\n"); }
  SECTION("a checksum that is wrong") {
    std::string bytes;
    append_rpc_frame(bytes, {.kind = FrameKind::kHello, .version = kRpcVersion});
    bytes.back() ^= 1;
    peer.send_bytes(bytes);
  }
  SECTION("a frame that is too large") {
    peer.hello();
    peer.send(
        {.kind = FrameKind::kCall, .id = 1, .method = "echo", .body = std::string(5000, 'x')});
  }
  SECTION("a reply") {
    peer.hello();
    peer.send({.kind = FrameKind::kReply, .id = 1});
  }
  SECTION("a call without a method") {
    peer.hello();
    peer.send({.kind = FrameKind::kCall, .id = 1});
  }
  SECTION("no hello in time") { world.run_for(seconds(6)); }
  SECTION("half a frame, and nothing more") {
    peer.hello();
    std::string bytes;
    append_rpc_frame(bytes, {.kind = FrameKind::kCall, .id = 1, .method = "echo"});
    peer.send_bytes(bytes.substr(0, bytes.size() - 1));
    world.run_for(seconds(31));
  }
  world.run();

  REQUIRE_FALSE(peer.heard.empty());
  CHECK_THAT(peer.heard.back(), StartsWith("a go-away: "));
  CHECK(peer.is_closed);
  CHECK(server->counts().broken == 1);
  const auto outcome = world.call(*client, "echo", "still here");
  world.run();
  REQUIRE(outcome->has_value());
  CHECK((*outcome)->body == "still here");
}

TEST_CASE("a client that does not read its answers is read no more, and is closed in the end") {
  RpcWorld world;
  auto options = world.server_options();
  options.limits.unsent_bytes_max = 10'000;
  const auto server = world.serve(std::move(options));
  RawPeer peer(world);
  peer.hello();
  world.run();
  peer.pause();
  std::uint64_t id = 0;
  for (int i = 0; i < 100; ++i) {
    peer.send(
        {.kind = FrameKind::kCall, .id = ++id, .method = "echo", .body = std::string(1000, 'x')});
    world.run();
  }

  CHECK(server->counts().calls < 20);
  CHECK(server->counts().memory < 30'000);
  world.run_for(seconds(31));
  CHECK(server->counts().connections == 0);
  CHECK(server->counts().memory == 0);
}

TEST_CASE("what peers can make a server keep is bounded") {
  RpcWorld world;
  auto options = world.server_options();
  options.limits.calls_max = 3;
  options.limits.connections_max = 2;
  options.limits.memory_max = 10'000;
  const auto server = world.serve(std::move(options));
  RawPeer peer(world);
  peer.hello();

  SECTION("calls of one connection") {
    for (std::uint64_t id = 1; id <= 5; ++id) {
      peer.send({.kind = FrameKind::kCall, .id = id, .method = "keep"});
    }
    world.run();
    CHECK(world.kept.size() == 3);
    CHECK_THAT(peer.heard.back(), StartsWith("a reply 5: RESOURCE_EXHAUSTED"));
  }
  SECTION("bytes of all connections") {
    peer.send(
        {.kind = FrameKind::kCall, .id = 1, .method = "keep", .body = std::string(9'000, 'x')});
    peer.send(
        {.kind = FrameKind::kCall, .id = 2, .method = "keep", .body = std::string(9'000, 'x')});
    world.run();
    CHECK(world.kept.size() == 1);
    CHECK_THAT(peer.heard.back(), StartsWith("a reply 2: RESOURCE_EXHAUSTED"));
  }
  SECTION("connections") {
    RawPeer second(world);
    RawPeer third(world);
    world.run();
    REQUIRE(third.heard.size() == 1);
    CHECK_THAT(third.heard[0], StartsWith("a go-away: RESOURCE_EXHAUSTED"));
    world.run_for(milliseconds(1200));
    CHECK(third.is_closed);
    CHECK_FALSE(second.is_closed);
    CHECK(server->counts().turned_away == 1);
  }
}

TEST_CASE("a client sends no more calls at a time than the server takes") {
  RpcWorld world;
  auto options = world.server_options();
  options.limits.calls_max = 3;
  const auto server = world.serve(std::move(options));
  const auto client = world.connect();
  std::vector<CallOutcomeSlot> outcomes;
  for (int i = 0; i < 10; ++i) outcomes.push_back(world.call(*client, "keep", std::to_string(i)));

  for (std::size_t i = 0; i < 10; ++i) {
    world.run();
    REQUIRE(world.kept.size() == std::min<std::size_t>(i + 3, 10));
    CHECK(world.kept[i].body() == std::to_string(i));
    world.kept[i].reply("");
  }
  world.run();
  for (const auto& outcome : outcomes) CHECK(outcome->has_value());
  CHECK(server->counts().refused == 0);
}

TEST_CASE("a connection that goes silent is given up, and the call goes on over a new one") {
  RpcWorld world;
  const auto server = world.serve();
  // An address that accepts and never says anything.
  std::vector<std::unique_ptr<Stream>> silent;
  const auto acceptor = world.transport->listen(
      "silent", [&](std::unique_ptr<Stream> stream) { silent.push_back(std::move(stream)); });
  auto options = world.client_options();
  options.addresses = {"silent", "server"};
  const auto client = world.connect(std::move(options));

  const auto outcome = world.call(*client, "echo", "x");
  world.run_for(seconds(3));

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kOk);
}

TEST_CASE("an idle connection is kept open by pings") {
  RpcWorld world;
  const auto server = world.serve();
  const auto client = world.connect();
  world.call(*client, "echo", "");
  world.run_for(minutes(60));

  CHECK(server->counts().connections == 1);
  CHECK(server->counts().accepted == 1);
}

TEST_CASE("a client that is destroyed tells each call what is known") {
  RpcWorld world;
  const auto server = world.serve();
  auto client = world.connect();
  const auto sent = world.call(*client, "keep", "", {.nonce = {1, 1}});
  world.run();
  const auto unsent = world.call(*client, "keep", "", {.nonce = {1, 2}});
  client.reset();

  REQUIRE(sent->has_value());
  CHECK((*sent)->kind == Kind::kUnknown);
  REQUIRE(unsent->has_value());
  CHECK((*unsent)->kind == Kind::kFailed);
  CHECK((*unsent)->status.code() == StatusCode::kStopping);
}

TEST_CASE("a call is not sent after the time that was promised") {
  RpcWorld world;
  auto server = world.serve();
  const auto client = world.connect();
  const auto outcome = world.call(
      *client, "keep", "",
      {.nonce = {1, 1}, .expires_at = world.clock->wall_now() + seconds(5), .timeout = minutes(1)});
  world.run_for(seconds(10));

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kUnknown);
  CHECK((*outcome)->status.code() == StatusCode::kExpired);
  CHECK((*outcome)->attempts == 3);
}

TEST_CASE("options that are wrong are named") {
  RpcWorld world;
  const auto named = [](const auto& opened) { return opened.status().to_string(); };

  CHECK_THAT(named(RpcClient::open({})), ContainsSubstring("RpcClientOptions::transport"));
  CHECK_THAT(named(RpcClient::open({.transport = world.transport})),
             ContainsSubstring("RpcClientOptions::addresses"));
  CHECK_THAT(named(RpcServer::open({})), ContainsSubstring("RpcServerOptions::transport"));
  auto options = world.server_options();
  options.tokens = {{.token = "short", .owner = "anna"}};
  CHECK_THAT(named(RpcServer::open(options)), ContainsSubstring("anna"));
  options = world.server_options();
  options.limits.calls_max = 100'000;
  CHECK_THAT(named(RpcServer::open(options)), ContainsSubstring("RpcLimits::calls_max is 100000"));
  options = world.server_options();
  options.methods["nothing"] = nullptr;
  CHECK_THAT(named(RpcServer::open(options)), ContainsSubstring("nothing has no handler"));
}

}  // namespace pv2::testing::client_server_test
