// SPDX-License-Identifier: Apache-2.0
//
// The proxy that loses things: one story for each fault, and for each way in which a connection
// through it ends.

#include "pv2/rpc/fault_proxy.h"

#include <pv2/base/frame.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "proxy_world.h"
#include "pv2/rpc/random_faults.h"
#include "pv2/rpc/scripted_faults.h"
#include "pv2/testing/seeds.h"
#include "support/catch.h"

namespace pv2::testing::fault_proxy_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

std::shared_ptr<ScriptedFaults> script(std::vector<FaultRule> rules) {
  auto plan = std::make_shared<ScriptedFaults>();
  for (FaultRule& rule : rules) REQUIRE(plan->add(std::move(rule)).ok());
  return plan;
}

/// The fate of the call with index 0.
std::shared_ptr<ScriptedFaults> first_call(const Fate& fate) {
  return script({{.kind = FrameKind::kCall, .fate = fate}});
}

/// A plan that is a function.
class Asks final : public FaultPlan {
 public:
  explicit Asks(std::function<Fate(const PassingFrame&)> fate) : fate_(std::move(fate)) {}
  Fate fate(const PassingFrame& frame) override { return fate_(frame); }

 private:
  std::function<Fate(const PassingFrame&)> fate_;
};

TEST_CASE("proxy: without a plan each byte passes, and so does the end") {
  ProxyWorld world;
  FramePeer& client = world.connect();

  client.call(1);
  world.run();
  world.server().reply(1);
  client.close();
  world.run();

  CHECK(world.server().bytes() == call_bytes(1));
  CHECK(world.server().heard() == Heard{"call 1", "closed"});
  CHECK(world.counters().to_server.passed == 1);
  CHECK(world.counters().connections == 0);
  CHECK_FALSE(world.transport.next_timer());
}

TEST_CASE("proxy: the server's end reaches the client after its last frame") {
  ProxyWorld world;
  FramePeer& client = world.connect();

  world.server().reply(1);
  world.server().close();
  world.run();

  CHECK(client.heard() == Heard{"reply 1", "closed"});
}

TEST_CASE("proxy: what a client sends before the server is connected arrives") {
  ProxyWorld world;
  std::unique_ptr<FramePeer> client;
  world.transport.connect("proxy", seconds(1), [&](auto stream) {
    client = std::make_unique<FramePeer>(*std::move(stream));
    client->call(1);
    client->close();
  });

  world.run();

  CHECK(world.server().heard() == Heard{"call 1", "closed"});
}

TEST_CASE("proxy: a dropped call never arrives, and the next one does") {
  ProxyWorld world(first_call({.copies = 0}));
  FramePeer& client = world.connect();

  client.call(1);
  client.call(2);
  world.run();

  CHECK(world.server().heard() == Heard{"call 2"});
  CHECK(world.counters().to_server.dropped == 1);
  CHECK(world.counters().kept_bytes == 0);
}

TEST_CASE("proxy: the reply to a method is dropped") {
  ProxyWorld world(
      script({{.kind = FrameKind::kReply, .method = "append", .fate = {.copies = 0}}}));
  FramePeer& client = world.connect();

  client.call(1);
  client.send(bytes_of({.kind = FrameKind::kCall, .id = 2, .method = "read"}));
  world.run();
  world.server().reply(2);
  world.server().reply(1);
  world.run();

  CHECK(client.heard() == Heard{"reply 2"});
  CHECK(world.counters().to_client.dropped == 1);
}

TEST_CASE("proxy: the next two replies come twice") {
  ProxyWorld world(script({{.kind = FrameKind::kReply, .times = 2, .fate = {.copies = 2}}}));
  FramePeer& client = world.connect();

  for (const std::uint64_t id : {1U, 2U, 3U}) world.server().reply(id);
  world.run();

  CHECK(client.heard() == Heard{"reply 1", "reply 1", "reply 2", "reply 2", "reply 3"});
  CHECK(world.counters().to_client.duplicated == 2);
  CHECK(world.counters().to_client.passed == 5);
}

TEST_CASE("proxy: a delay holds up what comes behind it, and nothing else") {
  ProxyWorld world(first_call({.delay = seconds(2)}));
  FramePeer& client = world.connect();

  client.call(1);
  client.call(2);
  world.server().reply(7);
  world.transport.run_for(seconds(2) - Duration(1));
  CHECK(world.server().heard().empty());
  CHECK(client.heard() == Heard{"reply 7"});

  world.transport.run_for(Duration(1));
  CHECK(world.server().heard() == Heard{"call 1", "call 2"});
  CHECK(world.counters().to_server.delayed == 1);
}

TEST_CASE("proxy: a delayed frame arrives although its sender has closed") {
  ProxyWorld world(first_call({.delay = minutes(5)}));
  FramePeer& client = world.connect();

  client.call(1);
  client.close();
  world.transport.run_for(minutes(5));

  CHECK(world.server().heard() == Heard{"call 1", "closed"});
  CHECK(world.counters().connections == 0);
}

TEST_CASE("proxy: a frame is held back until two later ones have passed") {
  ProxyWorld world(first_call({.behind = 2}));
  FramePeer& client = world.connect();

  client.call(1);
  client.call(2);
  world.run();
  CHECK(world.server().heard() == Heard{"call 2"});

  client.call(3);
  client.call(4);
  world.run();
  CHECK(world.server().heard() == Heard{"call 3", "call 1", "call 4"});
  CHECK(world.counters().to_server.reordered == 1);
}

TEST_CASE("proxy: frames that passed later but came earlier do not count for one held back") {
  ProxyWorld world(script({{.fate = {.delay = milliseconds(10)}}, {.fate = {.behind = 1}}}));
  FramePeer& client = world.connect();

  client.call(1);
  client.call(2);
  client.call(3);
  client.call(4);
  world.transport.run_for(milliseconds(10));

  CHECK(world.server().heard() == Heard{"call 1", "call 3", "call 2", "call 4"});
  CHECK(world.counters().to_server.reordered == 1);
}

TEST_CASE("proxy: a frame that waits for later ones in vain passes in time") {
  ProxyWorld world(first_call({.behind = 2, .hold_back = seconds(3)}));
  FramePeer& client = world.connect();

  client.call(1);
  client.call(2);
  world.transport.run_for(seconds(3));

  CHECK(world.server().heard() == Heard{"call 2", "call 1"});
  CHECK(world.counters().kept_bytes == 0);
}

TEST_CASE("proxy: a frame held back passes when its sender closes") {
  ProxyWorld world(first_call({.behind = 2, .hold_back = minutes(1)}));
  FramePeer& client = world.connect();

  client.call(1);
  client.close();
  world.run();

  CHECK(world.server().heard() == Heard{"call 1", "closed"});
  CHECK(world.counters().to_server.reordered == 0);
}

TEST_CASE("proxy: a cut before a frame loses it, and both ends see the end") {
  ProxyWorld world(first_call({.cut = Fate::Cut::kBefore}));
  FramePeer& client = world.connect();

  client.call(1);
  client.call(2);
  world.run();

  CHECK(world.server().heard() == Heard{"closed"});
  CHECK(client.heard() == Heard{"closed"});
  CHECK(world.counters().to_server.cut == 1);
  CHECK(world.counters().connections == 0);
}

TEST_CASE("proxy: a cut after a call loses the reply to it") {
  ProxyWorld world(first_call({.cut = Fate::Cut::kAfter}));
  world.answers = FramePeer::Answers::kCalls;
  FramePeer& client = world.connect();

  client.call(1);
  client.call(2);
  world.run();

  CHECK(world.server().heard() == Heard{"call 1", "closed"});
  CHECK(client.heard() == Heard{"closed"});
  CHECK(world.counters().to_server.cut == 1);
}

TEST_CASE("proxy: a cut after a frame waits for the delay of the frames before it") {
  ProxyWorld world(script({{.fate = {.delay = seconds(1)}}, {.fate = {.cut = Fate::Cut::kAfter}}}));
  FramePeer& client = world.connect();

  client.call(1);
  client.call(2);
  client.call(3);
  world.run();
  CHECK(world.server().heard().empty());
  world.transport.run_for(seconds(1));

  CHECK(world.server().heard() == Heard{"call 1", "call 2", "closed"});
}

TEST_CASE("proxy: a half-open direction swallows frames and the news of the end") {
  ProxyWorld world(script(
      {{.kind = FrameKind::kCall, .skip = 1, .fate = {.half_open = Fate::HalfOpen::kDirection}}}));
  FramePeer& client = world.connect();

  client.send(call_bytes(1) + call_bytes(2) + call_bytes(3));
  client.call(4);
  world.server().reply(1);
  world.run();
  CHECK(world.server().heard() == Heard{"call 1"});
  CHECK(client.heard() == Heard{"reply 1"});
  CHECK(world.counters().to_server.half_opened == 1);
  CHECK(world.counters().to_server.swallowed_bytes == 3 * call_bytes(2).size());

  client.close();
  world.transport.run_for(minutes(10));
  CHECK(world.server().heard().empty());
  CHECK(world.counters().connections == 1);
  world.server().close();
  world.run();
  CHECK(world.counters().connections == 0);
}

TEST_CASE("proxy: half-open in both directions, neither end hears anything") {
  ProxyWorld world(first_call({.half_open = Fate::HalfOpen::kBoth}));
  FramePeer& client = world.connect();

  client.call(1);
  world.run();
  world.server().reply(1);
  world.server().close();
  world.run();

  CHECK(client.heard().empty());
  CHECK(world.servers.back()->heard().empty());
  client.close();
  world.run();
  CHECK(world.counters().connections == 0);
}

TEST_CASE("proxy: all present connections are half-opened by hand, and later ones are not") {
  ProxyWorld world;
  FramePeer& dead = world.connect();
  world.proxy->half_open_all();
  dead.call(1);
  world.run();
  CHECK(world.server().heard().empty());

  FramePeer& alive = world.connect();
  alive.call(2);
  world.run();
  CHECK(world.server().heard() == Heard{"call 2"});
  CHECK(world.counters().to_server.half_opened == 1);
  CHECK(world.counters().to_client.half_opened == 1);
}

TEST_CASE("proxy: all connections are cut by hand, and clients may connect again") {
  ProxyWorld world;
  FramePeer& first = world.connect();
  FramePeer& second = world.connect();

  world.proxy->cut_all();
  world.run();
  CHECK(first.heard() == Heard{"closed"});
  CHECK(second.heard() == Heard{"closed"});
  CHECK(world.counters().cut_by_hand == 2);

  world.connect().call(1);
  world.run();
  CHECK(world.server().heard() == Heard{"call 1"});
}

TEST_CASE("proxy: new connections are refused for a while, and present ones go on") {
  ProxyWorld world;
  FramePeer& present = world.connect();

  world.proxy->set_new_connections(FaultProxy::NewConnections::kRefused);
  CHECK(world.connect().heard() == Heard{"closed"});
  CHECK(world.servers.size() == 1);
  present.call(1);
  world.run();
  CHECK(world.server().heard() == Heard{"call 1"});

  world.proxy->set_new_connections(FaultProxy::NewConnections::kAccepted);
  CHECK(world.connect().heard().empty());
  CHECK(world.counters().refused == 1);
}

TEST_CASE("proxy: new connections lead to the new target, and present ones stay") {
  ProxyWorld world;
  FramePeer& before = world.connect();
  std::unique_ptr<FramePeer> elsewhere;
  const auto acceptor = world.transport.listen("elsewhere", [&](std::unique_ptr<Stream> stream) {
    elsewhere = std::make_unique<FramePeer>(std::move(stream));
  });

  CHECK(world.proxy->set_target("").code() == StatusCode::kInvalidArgument);
  CHECK(world.proxy->set_target("elsewhere").ok());
  FramePeer& after = world.connect();
  before.call(1);
  after.call(2);
  world.run();

  CHECK(world.server().heard() == Heard{"call 1"});
  REQUIRE(elsewhere != nullptr);
  CHECK(elsewhere->heard() == Heard{"call 2"});
}

TEST_CASE("proxy: more connections than allowed are refused") {
  ProxyWorld world(nullptr, {.connections_max = 1});
  FramePeer& first = world.connect();

  CHECK(world.connect().heard() == Heard{"closed"});
  first.close();
  world.run();
  CHECK(world.connect().heard().empty());
}

TEST_CASE("proxy: a client is told when the target cannot be reached") {
  ProxyWorld world;
  world.acceptor.reset();

  CHECK(world.connect().heard() == Heard{"closed"});
  CHECK(world.counters().connects_failed == 1);
  CHECK(world.counters().connections == 0);
}

TEST_CASE("proxy: a throttled connection passes so many bytes in a second") {
  ProxyWorld world(nullptr, {.bytes_per_second = 1000});
  world.answers = FramePeer::Answers::kBytes;
  FramePeer& client = world.connect();

  client.send(call_bytes(1, std::string(10'000, 'x')));
  world.transport.run_for(seconds(2));
  CHECK(world.server().bytes().size() >= 1900);
  CHECK(world.server().bytes().size() <= 2100);

  CHECK(world.proxy->set_bytes_per_second(0).ok());
  world.transport.run_for(milliseconds(100));
  CHECK(world.server().bytes() == call_bytes(1, std::string(10'000, 'x')));
}

TEST_CASE("proxy: one byte a second is slow, and still arrives") {
  ProxyWorld world(nullptr, {.bytes_per_second = 1});
  FramePeer& client = world.connect();

  client.call(1);
  client.close();
  world.transport.run_for(seconds(static_cast<int>(call_bytes(1).size()) + 1));

  CHECK(world.server().heard() == Heard{"call 1", "closed"});
}

TEST_CASE("proxy: what is no frame ends the connection, and is counted") {
  const auto broken = GENERATE(
      std::string("GET / HTTP/1.1\r\n"),
      [] {
        std::string bytes = call_bytes(1);
        bytes.back() = static_cast<char>(bytes.back() ^ 1);
        return bytes;
      }(),
      [] {
        std::string bytes;
        append_frame(bytes, "no protobuf");
        return bytes;
      }());
  ProxyWorld world;
  FramePeer& client = world.connect();

  client.send(broken);
  world.run();

  CHECK(client.heard() == Heard{"closed"});
  CHECK(world.server().heard() == Heard{"closed"});
  CHECK(world.counters().to_server.undecodable == 1);
}

TEST_CASE("proxy: a frame that is too large ends the connection before it is kept") {
  ProxyWorld world(nullptr, {.frame_bytes_max = 100});
  FramePeer& client = world.connect();

  client.send(call_bytes(1, std::string(1000, 'x')).substr(0, 50));
  world.run();

  CHECK(client.heard() == Heard{"closed"});
  CHECK(world.counters().to_server.undecodable == 1);
}

TEST_CASE("proxy: other protocols pass as bytes, which are neither lost nor repeated") {
  ProxyWorld world(script({{.fate = {.copies = 0}},
                           {.fate = {.copies = 3, .behind = 1}},
                           {.fate = {.delay = seconds(1)}},
                           {.fate = {.cut = Fate::Cut::kAfter}}}),
                   {.unit = FaultProxyOptions::Unit::kBytes});
  world.answers = FramePeer::Answers::kBytes;
  FramePeer& client = world.connect();

  client.send("GET ");
  client.send("/ ");
  client.send("HTTP/1.1");
  world.run();
  CHECK(world.server().bytes() == "GET / ");
  world.transport.run_for(seconds(1));
  CHECK(world.server().bytes() == "GET / HTTP/1.1");

  client.send("\r\n");
  world.run();
  CHECK(world.server().bytes() == "GET / HTTP/1.1\r\n");
  CHECK(world.server().heard() == Heard{"closed"});
  CHECK(world.counters().to_server.dropped == 0);
  CHECK(world.counters().to_server.duplicated == 0);
}

TEST_CASE("proxy: a server that does not read makes the proxy stop reading") {
  constexpr std::size_t kKept = 10'000;
  ProxyWorld world(nullptr, {.kept_bytes_max = kKept});
  FramePeer& client = world.connect();
  world.server().stream().pause();
  const std::string frame = call_bytes(1, std::string(1000, 'x'));

  for (int i = 0; i < 100; ++i) client.send(frame);
  world.run();
  CHECK(world.counters().kept_bytes <= kKept + frame.size());
  CHECK(client.stream().unsent() > 75 * frame.size());

  world.server().stream().resume();
  world.run();
  CHECK(world.server().heard().size() == 100);
  CHECK(world.counters().kept_bytes == 0);
}

TEST_CASE("proxy: copies of a frame are made as the server reads them") {
  ProxyWorld world(script({{.times = 50, .fate = {.copies = Fate::kCopiesMax}}}),
                   {.kept_bytes_max = 1000});
  FramePeer& client = world.connect();
  world.server().stream().pause();

  for (std::uint64_t id = 1; id <= 50; ++id) client.call(id);
  world.run();
  CHECK(world.counters().kept_bytes <= 1200);

  world.server().stream().resume();
  world.run();
  CHECK(world.server().heard().size() == 50 * Fate::kCopiesMax);
}

TEST_CASE("proxy: an end that reads nothing is waited for, but not for ever") {
  ProxyWorld world(nullptr, {.linger = seconds(5)});
  FramePeer& client = world.connect();
  world.server().stream().pause();

  client.call(1);
  client.close();
  world.transport.run_for(seconds(4));
  CHECK(world.counters().connections == 1);
  world.transport.run_for(seconds(1));
  CHECK(world.counters().connections == 0);
  CHECK_FALSE(world.transport.next_timer());
}

TEST_CASE("proxy: a plan that fails costs the connection, and is counted") {
  const auto plan = GENERATE(
      std::shared_ptr<FaultPlan>(new Asks([](const auto&) -> Fate { throw 7; })),
      std::shared_ptr<FaultPlan>(
          new Asks([](const auto&) -> Fate { throw std::runtime_error("bad plan"); })),
      std::shared_ptr<FaultPlan>(new Asks([](const auto&) { return Fate{.copies = 1000}; })));
  ProxyWorld world(plan);
  FramePeer& client = world.connect();

  client.call(1);
  world.run();

  CHECK(client.heard() == Heard{"closed"});
  CHECK(world.counters().to_server.plan_failures == 1);
}

TEST_CASE("proxy: a plan may cut all connections while it is asked") {
  ProxyWorld* there = nullptr;
  ProxyWorld world(std::make_shared<Asks>([&](const auto&) {
    there->proxy->cut_all();
    return Fate();
  }));
  there = &world;
  FramePeer& client = world.connect();

  client.send(call_bytes(1) + call_bytes(2));
  world.run();

  CHECK(client.heard() == Heard{"closed"});
  CHECK(world.server().heard() == Heard{"closed"});
}

TEST_CASE("proxy: a plan is told of each frame's place, kind, method and size") {
  std::vector<std::string> told;
  ProxyWorld world(std::make_shared<Asks>([&](const PassingFrame& frame) {
    told.push_back(std::to_string(frame.connection) + "." + std::to_string(frame.index) + " " +
                   std::string(to_string(*frame.kind)) + " " + std::string(frame.method) + " " +
                   std::string(to_string(frame.direction)));
    if (frame.direction == Direction::kToServer) CHECK(frame.size == call_bytes(1).size());
    return Fate();
  }));
  world.answers = FramePeer::Answers::kCalls;

  world.connect().call(1);
  FramePeer& client = world.connect();
  client.call(1);
  client.call(2);
  world.run();

  CHECK(told == std::vector<std::string>{
                    "1.0 a call append to the server", "1.0 a reply append to the client",
                    "2.0 a call append to the server", "2.1 a call append to the server",
                    "2.0 a reply append to the client", "2.1 a reply append to the client"});
}

TEST_CASE("proxy: options outside of their bounds are refused") {
  MemoryTransport transport(std::make_shared<ManualClock>());
  const auto refused = [&](FaultProxyOptions options) {
    options.transport = &transport;
    return FaultProxy::open(std::move(options)).status().code() == StatusCode::kInvalidArgument;
  };

  CHECK(FaultProxy::open({.target = "server"}).status().code() == StatusCode::kInvalidArgument);
  CHECK(refused({}));
  CHECK(refused({.target = "server", .bytes_per_second = 2'000'000'000'000}));
  CHECK(refused({.target = "server", .frame_bytes_max = 0}));
  CHECK(refused({.target = "server", .kept_bytes_max = 0}));
  CHECK(refused({.target = "server", .connections_max = 0}));
  CHECK(refused({.target = "server", .linger = Duration::zero()}));
  CHECK_FALSE(refused({.target = "server"}));
}

TEST_CASE("proxy: an address that is in use is said to be so") {
  ProxyWorld world;

  const auto second =
      FaultProxy::open({.transport = &world.transport, .listen = "proxy", .target = "server"});

  CHECK(second.status().code() == StatusCode::kAlreadyExists);
}

TEST_CASE("proxy: destroying it closes its connections and frees its address") {
  ProxyWorld world(first_call({.delay = seconds(1)}));
  FramePeer& client = world.connect();
  client.call(1);
  world.run();

  world.proxy.reset();
  world.transport.run_for(seconds(2));

  CHECK(client.heard() == Heard{"closed"});
  CHECK(world.server().heard() == Heard{"closed"});
  CHECK(world.transport.listen("proxy", [](auto) {}).ok());
}

/// Many calls of several clients through all faults; returns what everybody heard.
Heard random_history(std::uint64_t seed) {
  constexpr FaultRates kRates{
      .drop = 0.05, .duplicate = 0.1, .delay = 0.1, .reorder = 0.1, .cut = 0.01, .half_open = 0.01};
  ProxyWorld world(*RandomFaults::create({.seed = seed, .to_server = kRates, .to_client = kRates}),
                   {.kept_bytes_max = 500});
  world.answers = FramePeer::Answers::kCalls;
  for (int i = 0; i < 6; ++i) world.connect();
  for (std::uint64_t id = 1; id <= 60; ++id) {
    for (const auto& client : world.clients) client->call(id);
    world.transport.run_for(milliseconds(id % 7));
  }

  // Nothing hangs: all that was kept has passed, or its connection has ended.
  world.transport.run_for(minutes(1));
  CHECK(world.counters().kept_bytes == 0);
  CHECK_FALSE(world.transport.next_timer());
  for (const auto& client : world.clients) client->close();
  for (const auto& server : world.servers) server->close();
  world.run();
  CHECK(world.counters().connections == 0);

  Heard all;
  for (const auto& peers : {std::cref(world.clients), std::cref(world.servers)}) {
    for (const auto& peer : peers.get()) {
      for (std::string& line : peer->heard()) all.push_back(std::move(line));
      all.emplace_back("---");
    }
  }
  return all;
}

TEST_CASE("proxy: the same seed gives the same history, and nothing hangs in any") {
  const Seeds seeds = seeds_from_environment(10);
  for (std::uint64_t i = 0; i < seeds.count; ++i) {
    const std::uint64_t seed = seeds.first + i;
    INFO("PV2_TEST_SEED=" << seed);
    const Heard history = random_history(seed);

    CHECK(history == random_history(seed));
    CHECK(history != random_history(seed + 1'000'000));
  }
}

}  // namespace
}  // namespace pv2::testing::fault_proxy_test
