// SPDX-License-Identifier: Apache-2.0
//
// Calls that are done once, by their nonce or in a session, with a client, a server and a network
// in memory between them.

#include "pv2/remote/once.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pv2/rpc/rpc_client.h"
#include "pv2/rpc/rpc_session.h"
#include "remote/tally_server.h"
#include "support/catch.h"

namespace pv2::testing::once_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Kind = CallOutcome::Kind;

struct World {
  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryTransport> transport = std::make_shared<MemoryTransport>(clock);
  std::unique_ptr<TallyServer> server = std::make_unique<TallyServer>(disk, transport, clock);
  std::unique_ptr<RpcClient> client =
      *RpcClient::open({.transport = transport, .addresses = {"server"}, .seed = 3});
  std::unique_ptr<RpcSession> session = *RpcSession::open(*client, {.token = "a client"});

  void run() {
    for (std::size_t did = 1; did != 0;) {
      did = transport->run_until_idle();
      server->pump();
      did += transport->run_until_idle();
    }
  }
  void run_for(Duration time) {
    for (Duration passed{}; passed < time; passed += seconds(1)) {
      transport->run_for(seconds(1));
      server->pump();
    }
    run();
  }
  void kill() {
    server.reset();
    server = std::make_unique<TallyServer>(disk, transport, clock);
  }
  using Slot = std::shared_ptr<std::optional<CallOutcome>>;
  Slot add(const std::string& operation, CallOptions options) {
    auto slot = std::make_shared<std::optional<CallOutcome>>();
    client->call("add", operation, std::move(options),
                 [slot](CallOutcome outcome) { slot->emplace(std::move(outcome)); });
    return slot;
  }
  using SessionSlot = std::shared_ptr<std::optional<SessionOutcome>>;
  SessionSlot add_in_session(const std::string& operation, CallOptions options = {}) {
    auto slot = std::make_shared<std::optional<SessionOutcome>>();
    session->call("session.add", operation, std::move(options),
                  [slot](SessionOutcome outcome) { slot->emplace(std::move(outcome)); });
    return slot;
  }
  std::size_t did(const std::string& operation = {}) const {
    return disk->rows(Space::kHost, "did/" + operation);
  }
};

}  // namespace

TEST_CASE("N-02: calls under one nonce are done once, and get the same bytes") {
  World world;
  std::vector<World::Slot> slots;
  for (int i = 0; i < 5; ++i) slots.push_back(world.add("x", {.nonce = {1, 1}}));
  world.run();
  world.kill();
  slots.push_back(world.add("x", {.nonce = {1, 1}}));
  world.run_for(seconds(3));

  for (const auto& slot : slots) {
    REQUIRE(slot->has_value());
    CHECK((*slot)->kind == Kind::kOk);
    CHECK((*slot)->body == "1");
  }
  CHECK(world.did() == 1);
}

TEST_CASE("N-05: nonces of different groups are different") {
  World world;
  world.add("x", {.nonce = {1, 1}});
  world.add("x", {.nonce = {2, 1}});
  world.run();

  CHECK(world.did() == 2);
}

TEST_CASE("N-01: an operation whose answer was lost is found by its nonce, also after a crash") {
  World world;
  const auto first = world.add("x", {.nonce = {1, 1}, .timeout = seconds(1)});
  world.transport->run_until_idle();  // the server has it; its batch is not durable
  world.transport->run_for(seconds(2));
  REQUIRE(first->has_value());
  CHECK((*first)->kind == Kind::kUnknown);
  const bool was_durable = GENERATE(true, false);
  if (was_durable) world.server->pump();
  world.kill();

  const auto again = world.add("x", {.nonce = (*first)->nonce, .resumed = true});
  world.run_for(seconds(3));
  REQUIRE(again->has_value());
  CHECK((*again)->body == "1");
  CHECK(world.did() == 1);
}

TEST_CASE("a nonce that is used for something else is refused, and tells nothing") {
  World world;
  world.add("x", {.nonce = {1, 1}});
  world.run();
  const auto other = world.add("y", {.nonce = {1, 1}});
  world.run();

  REQUIRE(other->has_value());
  CHECK((*other)->kind == Kind::kFailed);
  CHECK((*other)->status.code() == StatusCode::kKeyReused);
  CHECK((*other)->was_refused);
}

TEST_CASE("a nonce of another caller, or of another method, is refused") {
  const auto clock = std::make_shared<ManualClock>();
  const auto transport = std::make_shared<MemoryTransport>(clock);
  ServerNonceManager nonces({.clock = clock});
  RpcServerOptions options{.transport = transport, .address = "server"};
  options.tokens = {{.token = "the token of anna", .owner = "anna"},
                    {.token = "the token of bert", .owner = "bert"}};
  for (const char* const method : {"add", "take"}) {
    options.methods[method] = once_by_nonce(nonces, *transport, [](OnceCall call) {
      RowBatch effect;
      call.save(effect, std::string("done"));
      call.committed({});
    });
  }
  const auto server = *RpcServer::open(std::move(options));
  const auto asked = [&](std::string token, std::string method) {
    const auto client = *RpcClient::open(
        {.transport = transport, .addresses = {"server"}, .token = std::move(token), .seed = 3});
    std::optional<CallOutcome> got;
    client->call(std::move(method), "x", {.nonce = {1, 1}},
                 [&](CallOutcome outcome) { got = std::move(outcome); });
    transport->run_until_idle();
    REQUIRE(got.has_value());
    return got->ok() ? StatusCode::kOk : got->status.code();
  };

  CHECK(asked("the token of anna", "add") == StatusCode::kOk);
  CHECK(asked("the token of anna", "add") == StatusCode::kOk);
  CHECK(asked("the token of bert", "add") == StatusCode::kKeyReused);
  CHECK(asked("the token of anna", "take") == StatusCode::kKeyReused);
}

TEST_CASE("a call that was moved from is still the call, and may be ended") {
  const auto clock = std::make_shared<ManualClock>();
  const auto transport = std::make_shared<MemoryTransport>(clock);
  ServerNonceManager nonces({.clock = clock});
  RpcServerOptions options{.transport = transport, .address = "server"};
  options.methods["add"] = once_by_nonce(nonces, *transport, [](OnceCall call) {
    OnceCall kept = std::move(call);
    OnceCall assigned = kept;
    assigned = std::move(kept);
    CHECK(&kept.call() == &call.call());  // NOLINT(bugprone-use-after-move): is promised
    RowBatch effect;
    call.save(effect, std::string("done"));
    kept.committed({});
  });
  const auto server = *RpcServer::open(std::move(options));
  const auto client =
      *RpcClient::open({.transport = transport, .addresses = {"server"}, .seed = 3});
  std::optional<CallOutcome> got;
  client->call("add", "x", {.nonce = {1, 1}},
               [&](CallOutcome outcome) { got = std::move(outcome); });
  transport->run_until_idle();

  REQUIRE(got.has_value());
  CHECK(got->body == "done");
}

TEST_CASE("R-08: a definite failure is the outcome of each copy") {
  World world;
  for (int i = 0; i < 2; ++i) {
    const auto slot = world.add("no money", {.nonce = {1, 1}});
    world.run();
    REQUIRE(slot->has_value());
    CHECK((*slot)->kind == Kind::kFailed);
    CHECK_FALSE((*slot)->was_refused);
    CHECK((*slot)->status.message() == "no: no money");
    world.kill();
    world.run_for(seconds(2));
  }
}

TEST_CASE("R-12: a session numbers its requests, and keeps within the window") {
  World world;
  std::vector<World::SessionSlot> slots;
  for (int i = 0; i < 20; ++i) slots.push_back(world.add_in_session(std::to_string(i)));
  world.run();

  for (std::size_t i = 0; i < slots.size(); ++i) {
    REQUIRE(slots[i]->has_value());
    CHECK((*slots[i])->outcome.kind == Kind::kOk);
    CHECK((*slots[i])->number == i + 1);
  }
  CHECK(world.session->first_unacked() == 21);
  CHECK(world.did() == 20);
  CHECK(world.server->rpc().counts().refused == 0);
}

TEST_CASE("R-01: a request of a session goes on over a crash of the server, done once") {
  World world;
  world.add_in_session("first");
  world.run();
  const auto slot = world.add_in_session("x");
  world.transport->run_until_idle();
  if (GENERATE(true, false)) world.server->pump();
  world.kill();
  world.run_for(seconds(5));

  REQUIRE(slot->has_value());
  CHECK((*slot)->outcome.body == "2");
  CHECK(world.did("x") == 1);
}

TEST_CASE("R-02: a session that is opened twice with one token is one session") {
  World world;
  world.add_in_session("x");
  world.run();
  auto second = *RpcSession::open(*world.client, {.token = "a client"});
  second->call("session.add", "y", {}, [](SessionOutcome) {});
  world.run();

  CHECK(second->id() == world.session->id());
  CHECK(world.server->sessions().live() == 1);
}

TEST_CASE("a request whose outcome is unknown keeps its place until it is asked again") {
  World world;
  world.add_in_session("first");
  world.run();
  const auto slot = world.add_in_session("x", {.timeout = seconds(1)});
  world.transport->run_for(seconds(2));
  REQUIRE(slot->has_value());
  CHECK((*slot)->outcome.kind == Kind::kUnknown);
  world.run();
  CHECK(world.session->first_unacked() == 2);

  std::optional<SessionOutcome> again;
  world.session->ask_again((*slot)->number, "session.add", "x", {},
                           [&](SessionOutcome outcome) { again = std::move(outcome); });
  world.run();
  REQUIRE(again.has_value());
  CHECK(again->outcome.body == "2");
  CHECK(world.session->first_unacked() == 3);
  CHECK(world.did("x") == 1);
}

TEST_CASE("a request that finds no room in the window in time was not sent") {
  World world;
  world.add_in_session("first");
  world.run();
  for (int i = 0; i < 4; ++i) world.add_in_session("slow", {.timeout = seconds(30)});
  const auto slot = world.add_in_session("x", {.timeout = seconds(3)});
  world.transport->run_for(seconds(4));  // nothing becomes durable

  REQUIRE(slot->has_value());
  CHECK((*slot)->outcome.kind == Kind::kFailed);
  CHECK((*slot)->number == 0);
}

TEST_CASE("R-20: an idle session that says that it lives is kept") {
  World world;
  world.add_in_session("x");
  for (int i = 0; i < 60; ++i) {
    world.run_for(minutes(1));
    world.server->maintain();
    world.run();
  }
  const auto slot = world.add_in_session("y");
  world.run();

  REQUIRE(slot->has_value());
  CHECK((*slot)->outcome.ok());
}

TEST_CASE("R-16: a session that the server has given up runs nothing more, and says so") {
  World world;
  world.add_in_session("x");
  world.run();
  const std::uint64_t id = world.session->id();
  world.server->sessions().close(SessionId{id}, "", [](const Status&) {});
  world.run();
  const auto slot = world.add_in_session("y");
  world.run();
  const auto next = world.add_in_session("z");
  world.run();

  for (const auto& each : {slot, next}) {
    REQUIRE(each->has_value());
    CHECK((*each)->outcome.kind == Kind::kFailed);
    CHECK((*each)->outcome.status.code() == StatusCode::kExpired);
  }
  CHECK(world.did() == 1);
}

TEST_CASE("a session is closed when all its requests have an outcome") {
  World world;
  std::optional<Status> closed;
  const auto close = [&] {
    closed.reset();
    world.session->close([&](Status status) { closed = std::move(status); });
    world.run();
  };
  world.add_in_session("first");
  world.run();
  world.add_in_session("x");
  world.transport->run_until_idle();
  world.session->close([&](Status status) { closed = std::move(status); });
  REQUIRE(closed.has_value());
  CHECK(closed->code() == StatusCode::kFailedPrecondition);
  world.run();
  close();

  REQUIRE(closed.has_value());
  CHECK(closed->ok());
  CHECK(world.server->sessions().live() == 0);
}

TEST_CASE("a thousand copies that take over one after the other need no deep stack") {
  World world;
  std::vector<World::Slot> slots;
  for (int i = 0; i < 1000; ++i) {
    slots.push_back(world.add("refused", {.nonce = {1, 1}, .attempt_timeout = minutes(1)}));
  }
  world.transport->run_until_idle();
  REQUIRE(world.server->held.size() == 1);
  world.server->held[0].refuse(Status(StatusCode::kFailedPrecondition, "not the leader"));
  CHECK(world.server->refused == 0);  // none of them within that call
  world.server->held.clear();
  world.run();

  CHECK(world.server->refused == slots.size() - 1);
  for (const auto& slot : slots) CHECK(slot->has_value());
}

TEST_CASE("what a handler refuses as expired does not end the session") {
  World world;
  world.server->was_held = true;
  const auto refused = world.add_in_session("refused");
  const auto next = world.add_in_session("x");
  world.run();

  REQUIRE(refused->has_value());
  CHECK((*refused)->outcome.kind == Kind::kFailed);
  CHECK((*refused)->outcome.status.code() == StatusCode::kFailedPrecondition);
  REQUIRE(next->has_value());
  CHECK((*next)->outcome.ok());
}

TEST_CASE("a number that has its outcome is not asked again, and not called failed") {
  World world;
  const auto first = world.add_in_session("x");
  world.run();
  std::optional<SessionOutcome> again;
  world.session->ask_again((*first)->number, "session.add", "x", {},
                           [&](SessionOutcome outcome) { again = std::move(outcome); });
  world.run();

  REQUIRE(again.has_value());
  CHECK(again->outcome.kind == Kind::kUnknown);
  CHECK(again->outcome.status.code() == StatusCode::kFailedPrecondition);
}

TEST_CASE("what a caller throws when it is told of a request is swallowed") {
  World world;
  for (int i = 0; i < 4; ++i) world.add_in_session("slow");
  bool was_told = false;
  world.session->call("session.add", "x", {.timeout = seconds(1)}, [&](const SessionOutcome&) {
    was_told = true;
    throw 1;
  });
  world.transport->run_for(seconds(2));

  CHECK(was_told);
}

TEST_CASE("N-18: copies that wait are refused when the server stops, and the owner goes on") {
  World world;
  const auto first = world.add("x", {.nonce = {1, 1}, .timeout = minutes(1)});
  const auto copy = world.add("x", {.nonce = {1, 1}, .timeout = minutes(1)});
  world.transport->run_until_idle();
  world.server->rpc().stop(seconds(30), [] {});
  world.run();

  REQUIRE(first->has_value());
  CHECK((*first)->body == "1");
  CHECK_FALSE(copy->has_value());
  world.kill();
  world.run_for(seconds(3));
  REQUIRE(copy->has_value());
  CHECK((*copy)->body == "1");
  CHECK(world.did() == 1);
}

}  // namespace pv2::testing::once_test
