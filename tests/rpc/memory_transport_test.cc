// SPDX-License-Identifier: Apache-2.0
//
// The network in memory: what its streams, timers and addresses promise, in which order, and what
// happens to what is left when one side goes first.

#include "pv2/rpc/memory_transport.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.h"

namespace pv2::testing::memory_transport_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using History = std::vector<std::string>;

/// Writes down what it hears, after its name.
class Listener final : public StreamListener {
 public:
  Listener(std::string name, History& history) : name_(std::move(name)), history_(history) {}

  void on_bytes(std::string_view bytes) override {
    history_.push_back(name_ + " reads " + std::string(bytes));
    if (then) then();
  }
  void on_drained() override { history_.push_back(name_ + " is drained"); }
  void on_closed(const Status& why) override {
    history_.push_back(name_ + " is closed: " + why.to_string());
  }

  std::function<void()> then;

 private:
  const std::string name_;
  History& history_;
};

/// One connection between "left", who connected, and "right", who accepted.
struct World {
  World() {
    acceptor = *transport->listen("here", [this](std::unique_ptr<Stream> stream) {
      right = std::move(stream);
      right->start(right_listener);
    });
    transport->connect("here", seconds(1), [this](Result<std::unique_ptr<Stream>> stream) {
      left = *std::move(stream);
      left->start(left_listener);
    });
    transport->run_until_idle();
  }

  static void send(const std::unique_ptr<Stream>& stream, std::string bytes) {
    stream->send(bytes);
    CHECK(bytes.empty());
  }
  History heard() {
    transport->run_until_idle();
    return std::exchange(history, {});
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  History history;
  Listener left_listener{"left", history};
  Listener right_listener{"right", history};
  std::unique_ptr<MemoryTransport> transport = std::make_unique<MemoryTransport>(clock);
  std::unique_ptr<StreamAcceptor> acceptor;
  std::unique_ptr<Stream> left;
  std::unique_ptr<Stream> right;
};

TEST_CASE("each send arrives as one piece, in order, and the sender is drained after it") {
  World world;

  World::send(world.left, "one");
  World::send(world.left, "two");
  CHECK(world.left->unsent() == 6);
  CHECK(world.history.empty());

  CHECK(world.heard() == History{"right reads one", "right reads two", "left is drained"});
  CHECK(world.left->unsent() == 0);
}

TEST_CASE("sending nothing is heard by nobody") {
  World world;

  World::send(world.left, "");

  CHECK(world.heard().empty());
}

TEST_CASE("a paused stream keeps its pieces, and the sender's unsent bytes grow") {
  World world;
  world.right->pause();

  World::send(world.left, "one");
  World::send(world.left, "two");
  CHECK(world.heard().empty());
  CHECK(world.left->unsent() == 6);

  world.right->resume();
  CHECK(world.heard() == History{"right reads one", "right reads two", "left is drained"});
}

TEST_CASE("a stream that is paused by its listener hears no further piece") {
  World world;
  world.right_listener.then = [&] { world.right->pause(); };
  World::send(world.left, "one");
  World::send(world.left, "two");

  CHECK(world.heard() == History{"right reads one"});
  world.right->resume();
  world.right->pause();
  world.right->resume();
  CHECK(world.heard() == History{"right reads two", "left is drained"});
}

TEST_CASE("the other end hears of a closed stream after what was sent before") {
  World world;
  World::send(world.left, "last words");

  world.left.reset();

  CHECK(world.heard() == History{"right reads last words", "right is closed: OK"});
  World::send(world.right, "to nobody");
  CHECK(world.heard().empty());
}

TEST_CASE("a paused stream hears of its end when it goes on") {
  World world;
  world.right->pause();
  World::send(world.left, "last words");
  world.left.reset();
  CHECK(world.heard().empty());

  world.right->resume();

  CHECK(world.heard() == History{"right reads last words", "right is closed: OK"});
}

TEST_CASE("bytes that cross the news of the end are lost") {
  World world;
  world.left.reset();

  World::send(world.right, "too late");

  CHECK(world.heard() == History{"right is closed: OK"});
}

TEST_CASE("a stream may be destroyed by its listener") {
  World world;
  world.right_listener.then = [&] { world.right.reset(); };
  World::send(world.left, "one");
  World::send(world.left, "two");

  const History heard = world.heard();

  CHECK(heard.front() == "right reads one");
  CHECK(heard.back() == "left is closed: OK");
  CHECK(std::count(heard.begin(), heard.end(), "right reads two") == 0);
}

TEST_CASE("nobody listens at an address before an acceptor does, nor after it is gone") {
  World world;
  std::vector<StatusCode> outcomes;
  const auto connect = [&](std::string_view address) {
    world.transport->connect(address, seconds(1), [&](Result<std::unique_ptr<Stream>> stream) {
      outcomes.push_back(stream.status().code());
    });
    world.transport->run_until_idle();
  };

  connect("elsewhere");
  connect("here");
  world.acceptor.reset();
  connect("here");
  connect("");

  CHECK(outcomes == std::vector{StatusCode::kUnavailable, StatusCode::kOk, StatusCode::kUnavailable,
                                StatusCode::kInvalidArgument});
}

TEST_CASE("an address has one acceptor, and a port of 0 is one that nobody uses") {
  World world;
  const auto ignore = [](std::unique_ptr<Stream>) {};

  CHECK(world.transport->listen("here", ignore).status().code() == StatusCode::kAlreadyExists);
  CHECK(world.transport->listen("", ignore).status().code() == StatusCode::kInvalidArgument);
  const auto first = *world.transport->listen("host:0", ignore);
  const auto second = *world.transport->listen("host:0", ignore);
  CHECK(first->address() != second->address());

  world.acceptor.reset();
  CHECK(world.transport->listen("here", ignore).ok());
}

TEST_CASE("a connection is told of nowhere within the call") {
  World world;
  bool told = false;

  world.transport->connect("elsewhere", seconds(1), [&](const auto&) { told = true; });

  CHECK_FALSE(told);
  world.transport->run_until_idle();
  CHECK(told);
}

TEST_CASE("timers are called by time, those of one time in the order they were asked for") {
  World world;
  const SteadyTime now = world.clock->steady_now();
  std::vector<int> called;
  const auto call = [&](int number) { return [&called, number] { called.push_back(number); }; };
  world.transport->call_at(now + seconds(2), call(3));
  world.transport->call_at(now + seconds(1), call(1));
  const TimerId cancelled = world.transport->call_at(now + seconds(1), call(0));
  world.transport->call_at(now + seconds(1), call(2));
  world.transport->call_at(now + seconds(9), call(4));

  world.transport->cancel(cancelled);
  world.transport->cancel(cancelled);
  world.transport->cancel({});

  CHECK(world.transport->next_timer() == now + seconds(1));
  CHECK(world.transport->run_until_idle() == 0);
  world.transport->run_for(seconds(2));
  CHECK(called == std::vector{1, 2, 3});
  CHECK(world.clock->steady_now() == now + seconds(2));
}

TEST_CASE("the clock stops at each timer that is due, also at one that a timer asked for") {
  World world;
  const SteadyTime start = world.clock->steady_now();
  std::vector<SteadyTime> called;
  std::function<void()> tick = [&] {
    called.push_back(world.clock->steady_now());
    if (called.size() < 3) world.transport->call_at(called.back() + milliseconds(10), tick);
  };
  world.transport->call_at(start, tick);

  world.transport->run_for(seconds(1));

  CHECK(called ==
        std::vector<SteadyTime>{start, start + milliseconds(10), start + milliseconds(20)});
}

TEST_CASE("tasks of other threads run where the loop is run") {
  World world;
  bool on_loop = false;

  std::thread other([&] {
    CHECK_FALSE(world.transport->on_loop());
    world.transport->post([&] { on_loop = world.transport->on_loop(); });
  });
  other.join();
  world.transport->run_until_idle();

  CHECK(on_loop);
}

TEST_CASE("work that never ends is bounded by the caller") {
  World world;
  std::function<void()> again = [&] { world.transport->post(again); };
  world.transport->post(again);

  CHECK(world.transport->run_until_idle(100) == 100);
}

TEST_CASE("what is left of a destroyed network does nothing") {
  World world;
  bool called = false;
  const auto kept = std::make_shared<int>(0);
  world.transport->post([&called, kept] { called = true; });
  world.transport->call_at(world.clock->steady_now(), [&called, kept] { called = true; });
  world.transport->connect("here", seconds(1), [&called, kept](const auto&) { called = true; });
  World::send(world.left, "unread");

  world.transport.reset();
  World::send(world.left, "unread");
  world.left.reset();
  world.right->pause();
  world.right->resume();
  world.acceptor.reset();
  world.right.reset();

  CHECK_FALSE(called);
  CHECK(kept.use_count() == 1);
  CHECK(world.history.empty());
}

}  // namespace
}  // namespace pv2::testing::memory_transport_test
