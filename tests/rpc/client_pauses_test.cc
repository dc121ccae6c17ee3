// SPDX-License-Identifier: Apache-2.0
//
// how often and how soon a client tries again, under the manual clock, and which of its
// addresses it tries.

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pv2/rpc/rpc_frame.h"
#include "rpc/rpc_world.h"
#include "support/catch.h"

namespace pv2::testing::client_pauses_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Kind = CallOutcome::Kind;

/// An address that accepts each connection, writes down when, and closes it.
class ClosedDoor {
 public:
  ClosedDoor(RpcWorld& world, const std::string& address, std::vector<std::string>* order = nullptr)
      : acceptor_(*world.transport->listen(
            address, [this, &world, address, order](const std::unique_ptr<Stream>&) {
              knocks.push_back(world.clock->steady_now());
              if (order != nullptr) order->push_back(address);
            })) {}
  std::vector<SteadyTime> knocks;

 private:
  std::unique_ptr<StreamAcceptor> acceptor_;
};

std::vector<Duration> spaces(const std::vector<SteadyTime>& times) {
  std::vector<Duration> between;
  for (std::size_t i = 1; i < times.size(); ++i) {
    between.push_back(std::chrono::duration_cast<Duration>(times[i] - times[i - 1]));
  }
  return between;
}

// By default a pause is doubled from 10 ms to 1 s, and up to half of it is taken off.
void check_pauses(const std::vector<Duration>& pauses) {
  Duration full = milliseconds(10);
  for (const Duration pause : pauses) {
    CHECK(pause >= full / 2);
    CHECK(pause <= full);
    full = std::min<Duration>(2 * full, seconds(1));
  }
}

}  // namespace

TEST_CASE("R-13: attempts to connect are spaced by pauses that double, with a random part") {
  RpcWorld world;
  ClosedDoor door(world, "server");
  const auto client = world.connect();
  const auto outcome = world.call(*client, "echo", "", {.timeout = seconds(30)});
  world.run_for(seconds(31));

  const std::vector<Duration> pauses = spaces(door.knocks);
  check_pauses(pauses);
  // 7 pauses are shorter than 1 s, and take 0.6 to 1.3 s together; then 0.5 to 1 s each.
  CHECK(door.knocks.size() >= 7 + 28);
  CHECK(door.knocks.size() <= 9 + 59);
  CHECK(std::set(pauses.begin() + 7, pauses.end()).size() > 20);
  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kFailed);
  CHECK((*outcome)->attempts == 0);
}

TEST_CASE("R-13: clients with other seeds return at other times") {
  const auto times = [](std::uint64_t seed) {
    RpcWorld world;
    ClosedDoor door(world, "server");
    auto options = world.client_options();
    options.seed = seed;
    const auto client = world.connect(std::move(options));
    world.call(*client, "echo", "", {.timeout = seconds(10)});
    world.run_for(seconds(11));
    return spaces(door.knocks);
  };

  CHECK(times(1) == times(1));
  CHECK(times(1) != times(2));
}

TEST_CASE("R-13: a call that is refused goes again after pauses that double") {
  RpcWorld world;
  std::vector<SteadyTime> attempts;
  auto options = world.server_options();
  options.methods["busy"] = [&](IncomingCall call) {
    attempts.push_back(world.clock->steady_now());
    call.refuse({StatusCode::kBusy, "another one holds it"});
  };
  const auto server = world.serve(std::move(options));
  const auto client = world.connect();
  const auto outcome = world.call(*client, "busy", "", {.timeout = seconds(10)});
  world.run_for(seconds(11));

  check_pauses(spaces(attempts));
  CHECK(attempts.size() >= 7 + 8);
  CHECK(attempts.size() <= 9 + 19);
  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kFailed);
  CHECK((*outcome)->attempts == attempts.size());
  CHECK_THAT((*outcome)->status.to_string(), ContainsSubstring("another one holds it"));
}

TEST_CASE("R-13: an attempt that is not answered goes again when its time is over, after a pause") {
  RpcWorld world;
  std::vector<SteadyTime> attempts;
  auto options = world.server_options();
  options.methods["keep"] = [&](IncomingCall call) {
    attempts.push_back(world.clock->steady_now());
    world.kept.push_back(std::move(call));
  };
  const auto server = world.serve(std::move(options));
  const auto client = world.connect();
  world.call(*client, "keep", "",
             {.nonce = {1, 1}, .timeout = seconds(10), .attempt_timeout = seconds(3)});
  world.run_for(seconds(11));

  Duration pause = milliseconds(10);
  for (const Duration space : spaces(attempts)) {  // the attempt's time, and a pause that doubles
    CHECK(space >= seconds(3) + pause / 2);
    CHECK(space <= seconds(3) + pause);
    pause *= 2;
  }
}

TEST_CASE("the pauses begin anew after an answer") {
  RpcWorld world;
  auto server = world.serve();
  const auto client = world.connect();
  const auto gone = [&](Duration time) {
    server.reset();
    ClosedDoor door(world, "server");
    world.call(*client, "echo", "", {.timeout = time});
    world.run_for(time);
    return spaces(door.knocks);
  };
  CHECK(gone(seconds(10)).back() >= milliseconds(500));
  server = world.serve();
  world.call(*client, "echo", "");
  world.run_for(seconds(2));

  const auto pauses = gone(milliseconds(100));
  REQUIRE(pauses.size() >= 2);
  CHECK(pauses.front() <= milliseconds(20));
}

TEST_CASE("several addresses are tried in their order, with a pause after each round") {
  RpcWorld world;
  std::vector<std::string> order;
  ClosedDoor a(world, "a", &order);
  ClosedDoor b(world, "b", &order);
  ClosedDoor c(world, "c", &order);
  auto options = world.client_options();
  options.addresses = {"a", "b", "c"};
  const auto client = world.connect(std::move(options));
  world.call(*client, "echo", "");

  world.run();
  CHECK(order == std::vector<std::string>{"a", "b", "c"});

  world.run_for(milliseconds(10));
  REQUIRE(order.size() >= 4);
  CHECK(order[3] == "a");
  world.run_for(seconds(5));
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK(order[i] == std::string(1, "abc"[i % 3]));
  }
}

TEST_CASE("addresses at which nobody listens are passed over at once") {
  RpcWorld world;
  const auto server = world.serve();
  auto options = world.client_options();
  options.addresses = {"nobody", "nobody else", "server"};
  const auto client = world.connect(std::move(options));

  const auto outcome = world.call(*client, "echo", "x");
  world.run();

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kOk);
}

TEST_CASE("a call that found no server says where it looked") {
  RpcWorld world;
  const auto client = world.connect();
  const auto outcome = world.call(*client, "echo", "", {.timeout = seconds(2)});
  world.run_for(seconds(3));

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kFailed);
  CHECK((*outcome)->status.code() == StatusCode::kDeadlineExceeded);
  CHECK_THAT((*outcome)->status.to_string(), ContainsSubstring("cannot connect to server"));
}

TEST_CASE("a server that lets a client in and sends it away at once is asked with pauses") {
  RpcWorld world;
  std::string bytes;
  append_rpc_frame(bytes, {.kind = FrameKind::kWelcome,
                           .version = kRpcVersion,
                           .calls_max = 1,
                           .frame_bytes_max = 4096});
  append_rpc_frame(bytes, {.kind = FrameKind::kGoAway,
                           .status = StatusCode::kResourceExhausted,
                           .message = "too many"});
  std::size_t connections = 0;
  const auto acceptor =
      world.transport->listen("server", [&](const std::unique_ptr<Stream>& stream) {
        ++connections;
        std::string copy = bytes;
        stream->send(copy);
      });
  const auto client = world.connect();
  const auto outcome = world.call(*client, "echo", "", {.nonce = {1, 1}, .timeout = seconds(10)});
  world.transport->run_until_idle(10'000);
  CHECK(connections == 1);
  world.run_for(seconds(11));

  CHECK(connections <= 30);
  REQUIRE(outcome->has_value());
  CHECK((*outcome)->kind == Kind::kUnknown);
}

}  // namespace pv2::testing::client_pauses_test
