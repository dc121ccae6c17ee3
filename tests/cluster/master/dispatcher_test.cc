// SPDX-License-Identifier: Apache-2.0
//
// What the master concludes about an operation that it hands to a server, and about the server.

#include "master/dispatcher.h"

#include <optional>
#include <vector>

#include "cluster/master/parts_world.h"
#include "wire/methods.h"
#include "wire/server_messages.h"

namespace pv2::testing::dispatcher_test {
namespace {

using namespace cluster;      // NOLINT: the layer under test
using namespace parts_world;  // NOLINT
using namespace std::chrono_literals;

using Kind = DispatchOutcome::Kind;

const ServerName kServer{"rs1", 1};
constexpr Duration kLease = 10s;

struct World : PartsWorld {
  /// The server takes everything.
  std::unique_ptr<RpcServer> start_server() {
    auto server = serve({{std::string(kServerDispatch), [this](IncomingCall call) {
                            DispatchRequest request;
                            REQUIRE(decode_fields(request, FieldSelection::kAll, call.body()).ok());
                            DispatchReply reply;
                            reply.answers.assign(request.operations.size(), {true, ""});
                            taken += request.operations.size();
                            if (refusal.ok()) return call.reply(encoded(reply));
                            call.refuse(refusal);
                          }}});
    find_address = [address = server->address()](const ServerName&) { return address; };
    return server;
  }
  Wait<DispatchOutcome> dispatch() {
    Wait<DispatchOutcome> wait;
    dispatcher.dispatch({.server = kServer, .effect_key = "key"}, wait.completion());
    settle();
    return wait;
  }
  /// A procedure that asks again whenever it is told that nothing was sent.
  void insist(Duration time) {
    const SteadyTime end = clock->steady_now() + time;
    while (clock->steady_now() < end) {
      dispatch();
      run_for(100ms);
    }
  }

  bool is_awaited = false;
  std::vector<ServerName> given_up;
  int later_epochs = 0;  ///< How often a server says that it has heard a later master.
  Status refusal;
  std::size_t taken = 0;
  Dispatcher dispatcher{transport,
                        links,
                        7,
                        kLease,
                        {.is_awaited = [this](const ServerName&) { return is_awaited; },
                         .give_up = [this](const ServerName& name) { given_up.push_back(name); },
                         .on_later_epoch = [this] { ++later_epochs; }}};
};

}  // namespace

TEST_CASE("an operation waits for a server that has not said where it listens, whatever it takes") {
  World world;
  world.is_awaited = true;
  std::vector<Wait<DispatchOutcome>> waits;
  for (int i = 0; i < 60; ++i) waits.push_back(world.dispatch());
  world.run_for(2 * kLease);
  CHECK(!waits.front().is_answered());

  const auto server = world.start_server();
  world.is_awaited = false;
  world.dispatcher.came(kServer);
  world.run_for(1s);

  for (const auto& wait : waits) CHECK(wait.answer().kind == Kind::kDone);
  CHECK(world.taken == 60);
  CHECK(world.given_up.empty());
}

TEST_CASE("an operation that waits for a server which turns out to be dead was not sent") {
  World world;
  world.is_awaited = true;
  const Wait<DispatchOutcome> wait = world.dispatch();

  world.dispatcher.fail_all(kServer);

  CHECK(wait.answer().kind == Kind::kNotSent);
}

TEST_CASE("a server that cannot be reached is given up after three calls and a lease") {
  World world;
  world.find_address = [](const ServerName&) { return "nowhere:1"; };
  world.insist(kLease / 2);
  CHECK(world.given_up.empty());

  world.insist(2 * kLease);

  CHECK(world.given_up == std::vector{kServer});
}

TEST_CASE("a server that refuses has answered, and is not given up") {
  World world;
  const auto server = world.start_server();
  world.refusal = {StatusCode::kUnavailable, "it stops"};

  world.insist(3 * kLease);

  CHECK(world.taken > 20);
  CHECK(world.given_up.empty());
  CHECK(world.later_epochs == 0);
}

TEST_CASE("a server that refuses a call because of a later master is not believed at once") {
  World world;
  const auto server = world.start_server();
  world.refusal = {StatusCode::kFenced, "a master of epoch 8 was heard"};

  const Wait<DispatchOutcome> wait = world.dispatch();
  world.run_for(1s);

  CHECK(wait.answer().kind == Kind::kNotSent);
  CHECK(world.later_epochs == 1);
  CHECK(world.given_up.empty());
}

}  // namespace pv2::testing::dispatcher_test
