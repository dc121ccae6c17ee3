// SPDX-License-Identifier: Apache-2.0
//
// The client's half of a session, against a server that is written out here, so that it can say
// anything. How the two halves work together is in tests/remote/once_test.cc.

#include "pv2/rpc/rpc_session.h"

#include <pv2/base/fields.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pv2/rpc/session_messages.h"
#include "rpc/rpc_world.h"
#include "support/catch.h"

namespace pv2::testing::rpc_session_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Kind = CallOutcome::Kind;
using SessionSlot = std::shared_ptr<std::optional<SessionOutcome>>;

/// A server that opens session 7 with a window of 2, and writes down what it hears about it.
struct SessionWorld : RpcWorld {
  std::vector<SessionCall> heartbeats;
  std::vector<SessionOpenRequest> opened;
  Status heartbeat_answer;  // not OK: it refuses so
  Status open_answer;
  std::unique_ptr<RpcServer> server = serve(session_options());
  std::unique_ptr<RpcClient> client = connect();
  std::unique_ptr<RpcSession> session = open({});

  RpcServerOptions session_options() {
    RpcServerOptions options = server_options();
    options.methods[std::string(kSessionOpen)] = [this](IncomingCall call) {
      if (!open_answer.ok()) return call.refuse(open_answer);
      SessionOpenRequest request;
      REQUIRE(decode_fields(request, FieldSelection::kAll, call.body()).ok());
      opened.push_back(std::move(request));
      SessionOpenReply reply{.session = 7, .window = 2};
      std::string body;
      encode_fields(reply, FieldSelection::kAll, body);
      call.reply(body);
    };
    options.methods[std::string(kSessionHeartbeat)] = [this](IncomingCall call) {
      heartbeats.push_back(call.session());
      if (heartbeat_answer.ok()) return call.reply({});
      call.refuse(heartbeat_answer);
    };
    options.methods[std::string(kSessionClose)] = [](IncomingCall call) { call.reply({}); };
    return options;
  }
  std::unique_ptr<RpcSession> open(RpcSessionOptions options) const {
    return *RpcSession::open(*client, std::move(options));
  }
  SessionSlot request(const std::string& method, CallOptions options = {}) const {
    auto slot = std::make_shared<std::optional<SessionOutcome>>();
    session->call(method, "body", std::move(options),
                  [slot](SessionOutcome outcome) { slot->emplace(std::move(outcome)); });
    return slot;
  }
};

}  // namespace

TEST_CASE("an idle session sends a heartbeat each period, with its mark") {
  SessionWorld world;
  world.request("echo");
  world.run();
  CHECK(world.heartbeats.empty());
  world.run_for(minutes(10) + seconds(1));

  CHECK(world.heartbeats.size() == 10);
  for (const SessionCall& heartbeat : world.heartbeats) {
    CHECK(heartbeat.session == 7);
    CHECK(heartbeat.number == 0);
    CHECK(heartbeat.first_unacked == 2);
  }
}

TEST_CASE("a heartbeat comes one period after the last request, whenever that was") {
  SessionWorld world;
  world.request("echo");
  world.run_for(seconds(59));  // just before a look
  world.request("echo");
  world.run_for(seconds(59));
  CHECK(world.heartbeats.empty());
  world.run_for(seconds(2));

  CHECK(world.heartbeats.size() == 1);
}

TEST_CASE("a session whose requests are heard sends no heartbeat") {
  SessionWorld world;
  for (int i = 0; i < 100; ++i) {
    world.request("echo");
    world.run_for(seconds(10));
  }

  CHECK(world.heartbeats.empty());
}

TEST_CASE("a session that was never used, or is closed, sends no heartbeat") {
  SessionWorld world;
  world.run_for(minutes(10));
  CHECK(world.opened.empty());
  world.request("echo");
  world.run();
  std::optional<Status> closed;
  world.session->close([&](Status status) { closed = std::move(status); });
  world.run_for(minutes(10));

  CHECK(closed == Status());
  CHECK(world.heartbeats.empty());
  const auto late = world.request("echo");
  world.run();
  REQUIRE(late->has_value());
  CHECK((*late)->outcome.kind == Kind::kFailed);
  CHECK((*late)->number == 0);
}

TEST_CASE("a heartbeat that hears that the session has expired ends it") {
  SessionWorld world;
  world.request("echo");
  world.run();
  world.heartbeat_answer = {StatusCode::kExpired, "no such session"};
  world.run_for(minutes(3));
  CHECK(world.heartbeats.size() == 1);

  const auto slot = world.request("echo");
  world.run();
  REQUIRE(slot->has_value());
  CHECK((*slot)->outcome.kind == Kind::kFailed);
  CHECK((*slot)->outcome.status.code() == StatusCode::kExpired);
}

TEST_CASE("requests that wait for room hear of the end of their session") {
  SessionWorld world;
  world.request("echo");
  world.run();
  for (int i = 0; i < 2; ++i) world.request("keep", {.timeout = seconds(1)});
  world.run_for(seconds(2));  // both are unknown, and fill the window
  const auto slot = world.request("echo", {.timeout = minutes(60)});
  world.run();
  CHECK_FALSE(slot->has_value());
  world.heartbeat_answer = {StatusCode::kExpired, "no such session"};
  world.run_for(minutes(3));

  REQUIRE(slot->has_value());
  CHECK((*slot)->outcome.kind == Kind::kFailed);
  CHECK((*slot)->outcome.status.code() == StatusCode::kExpired);
}

TEST_CASE("a session that cannot be opened fails its requests, and the next one tries again") {
  SessionWorld world;
  world.open_answer = {StatusCode::kKeyReused, "another client has this token"};
  const auto first = world.request("echo");
  world.run();
  REQUIRE(first->has_value());
  CHECK((*first)->outcome.kind == Kind::kFailed);
  CHECK((*first)->number == 0);
  CHECK_THAT((*first)->outcome.status.to_string(), ContainsSubstring("cannot be opened"));

  world.open_answer = {};
  const auto second = world.request("echo");
  world.run();
  REQUIRE(second->has_value());
  CHECK((*second)->outcome.ok());
  CHECK((*second)->number == 1);
  REQUIRE(world.opened.size() == 1);
  CHECK(world.opened[0].token.size() == 32);  // random
}

TEST_CASE("an unknown outcome that is given up frees its place in the window") {
  SessionWorld world;
  const auto unknown = world.request("keep", {.timeout = seconds(5)});
  const auto other = world.request("keep", {.timeout = minutes(5)});
  world.run_for(seconds(6));
  REQUIRE(unknown->has_value());
  CHECK((*unknown)->outcome.kind == Kind::kUnknown);
  CHECK(world.session->first_unacked() == 1);
  const auto waits = world.request("echo", {.timeout = minutes(5)});
  world.run();
  CHECK_FALSE(waits->has_value());

  world.session->give_up(1);
  world.run();
  REQUIRE(waits->has_value());
  CHECK((*waits)->number == 3);
  CHECK(world.session->first_unacked() == 2);
  CHECK_FALSE(other->has_value());
}

TEST_CASE("a request for which there is room too late takes no place in the window") {
  SessionWorld world;
  const auto first = world.request("keep", {.timeout = minutes(5)});
  const auto second = world.request("keep", {.timeout = minutes(5)});
  world.run();
  const auto late = world.request("keep", {.timeout = std::chrono::milliseconds(1005)});
  world.run_for(std::chrono::milliseconds(1006));  // before the session looks at its requests again
  REQUIRE(world.kept.size() == 2);
  world.kept[0].reply("");
  world.run();

  REQUIRE(late->has_value());
  CHECK((*late)->outcome.kind == Kind::kFailed);
  CHECK((*late)->outcome.status.code() == StatusCode::kDeadlineExceeded);
  CHECK((*late)->number == 0);
  CHECK(world.kept.size() == 2);
  CHECK(world.session->first_unacked() == 2);
  const auto next = world.request("echo");
  world.run();
  REQUIRE(next->has_value());
  CHECK((*next)->number == 3);
}

TEST_CASE("a request that has its outcome is not asked again") {
  SessionWorld world;
  world.request("echo");
  world.run();
  std::optional<SessionOutcome> again;
  world.session->ask_again(1, "echo", "body", {},
                           [&](SessionOutcome outcome) { again = std::move(outcome); });
  world.run();

  REQUIRE(again.has_value());
  CHECK(again->number == 1);
  CHECK(again->outcome.kind == Kind::kUnknown);
  CHECK(again->outcome.status.code() == StatusCode::kFailedPrecondition);
  CHECK(world.server->counts().calls == 2);  // open, echo
}

TEST_CASE("a session that is destroyed ends the requests that wait for room") {
  SessionWorld world;
  const auto a = world.request("keep");
  const auto b = world.request("keep");
  const auto waits = world.request("keep");
  world.run();
  world.session.reset();
  world.run();

  REQUIRE(waits->has_value());
  CHECK((*waits)->outcome.kind == Kind::kFailed);
  CHECK((*waits)->outcome.status.code() == StatusCode::kStopping);
  CHECK_FALSE(a->has_value());
  for (IncomingCall& call : world.kept) call.reply("late");
  world.run();
  REQUIRE(a->has_value());
  CHECK((*a)->outcome.body == "late");
  CHECK(b->has_value());
}

TEST_CASE("requests beyond those that may wait are refused, and take no number") {
  SessionWorld world;
  world.session = world.open({.waiting_max = 2});
  std::vector<SessionSlot> slots;
  // Two for the window of 2, which are kept; two that wait; and one too many.
  for (int i = 0; i < 2; ++i) slots.push_back(world.request("keep"));
  world.run();
  for (int i = 0; i < 3; ++i) slots.push_back(world.request("keep"));
  world.run();

  CHECK(world.kept.size() == 2);
  for (int i = 0; i < 4; ++i) CHECK(!slots[static_cast<std::size_t>(i)]->has_value());
  REQUIRE(slots[4]->has_value());
  CHECK((*slots[4])->number == 0);
  CHECK((*slots[4])->outcome.kind == Kind::kFailed);
  CHECK((*slots[4])->outcome.status.code() == StatusCode::kResourceExhausted);
}

TEST_CASE("options of a session that are wrong are named") {
  SessionWorld world;
  const auto named = [&](RpcSessionOptions options) {
    return RpcSession::open(*world.client, std::move(options)).status().to_string();
  };

  CHECK_THAT(named({.token = std::string(1025, 'x')}),
             ContainsSubstring("RpcSessionOptions::token has 1025 bytes"));
  CHECK_THAT(named({.heartbeat_every = {}}), ContainsSubstring("heartbeat_every"));
  CHECK_THAT(named({.waiting_max = 0}), ContainsSubstring("RpcSessionOptions::waiting_max is 0"));
}

}  // namespace pv2::testing::rpc_session_test
