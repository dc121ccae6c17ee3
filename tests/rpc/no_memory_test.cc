// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a call when there is no memory for it, or for its answer, and of a connection
// when there is none for it.

#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "rpc/rpc_world.h"
#include "support/catch.h"

namespace pv2::testing::no_memory_test {
namespace {

using std::chrono::milliseconds;

/// A stream whose start finds no memory.
class FullStream final : public Stream {
 public:
  explicit FullStream(std::unique_ptr<Stream> to) : to_(std::move(to)) {}
  void start(StreamListener&) override { throw std::bad_alloc(); }
  void send(std::string& bytes) override { to_->send(bytes); }
  std::size_t unsent() const noexcept override { return to_->unsent(); }
  void pause() override { to_->pause(); }
  void resume() override { to_->resume(); }
  std::string peer() const override { return to_->peer(); }

 private:
  const std::unique_ptr<Stream> to_;
};

/// A transport whose next post, or the start of whose next stream, finds no memory.
class FullTransport final : public Transport {
 public:
  explicit FullTransport(std::shared_ptr<Transport> to) : to_(std::move(to)) {}
  bool is_full = false;
  bool next_stream_is_full = false;

  void post(std::function<void()> task) override {
    if (std::exchange(is_full, false)) throw std::bad_alloc();
    to_->post(std::move(task));
  }
  bool on_loop() const noexcept override { return to_->on_loop(); }
  bool has_own_thread() const noexcept override { return to_->has_own_thread(); }
  Clock& clock() const noexcept override { return to_->clock(); }
  TimerId call_at(SteadyTime when, std::function<void()> task) override {
    return to_->call_at(when, std::move(task));
  }
  void cancel(TimerId timer) override { to_->cancel(timer); }
  Result<std::unique_ptr<StreamAcceptor>> listen(std::string_view address, Accept accept) override {
    return to_->listen(address, [this, accept = std::move(accept)](std::unique_ptr<Stream> stream) {
      if (std::exchange(next_stream_is_full, false)) {
        stream = std::make_unique<FullStream>(std::move(stream));
      }
      accept(std::move(stream));
    });
  }
  void connect(std::string_view address, Duration timeout, Connected connected) override {
    to_->connect(address, timeout, std::move(connected));
  }

 private:
  const std::shared_ptr<Transport> to_;
};

}  // namespace

TEST_CASE("a call whose answer finds no memory is asked again, and counts no more") {
  RpcWorld world;
  const auto full = std::make_shared<FullTransport>(world.transport);
  auto options = world.server_options();
  options.transport = full;
  const auto server = world.serve(std::move(options));
  const auto client = world.connect();
  const auto outcome = world.call(*client, "keep", "body", {.nonce = {1, 1}});
  world.run();
  REQUIRE(world.kept.size() == 1);

  SECTION("it can be answered again") {
    full->is_full = true;
    CHECK_THROWS_AS(world.kept.back().reply("first"), std::bad_alloc);
    world.kept.back().reply("second");
    world.run();
    REQUIRE(outcome->has_value());
    CHECK((*outcome)->body == "second");
    CHECK((*outcome)->attempts == 1);
  }
  SECTION("it is dropped") {
    full->is_full = true;
    world.kept.clear();
    CHECK(server->counts().calls_in_flight == 0);
    world.run_for(milliseconds(500));
    REQUIRE(world.kept.size() == 1);
    world.kept.back().reply("answer");
    world.run();
    REQUIRE(outcome->has_value());
    CHECK((*outcome)->body == "answer");
    CHECK((*outcome)->attempts == 2);
  }
  CHECK(server->counts().calls_in_flight == 0);
  CHECK(server->counts().memory == 0);
}

TEST_CASE("a connection that finds no memory is turned away, and the next one is served") {
  RpcWorld world;
  const auto full = std::make_shared<FullTransport>(world.transport);
  auto options = world.server_options();
  options.transport = full;
  const auto server = world.serve(std::move(options));
  full->next_stream_is_full = true;
  const auto client = world.connect();
  const auto outcome = world.call(*client, "echo", "body");
  world.run_for(milliseconds(500));

  REQUIRE(outcome->has_value());
  CHECK((*outcome)->body == "body");
  CHECK(server->counts().accepted == 2);
  CHECK(server->counts().turned_away == 1);
  CHECK(server->counts().connections == 1);
}

TEST_CASE("a call that finds no memory is not made, and the next one is") {
  RpcWorld world;
  const auto server = world.serve();
  const auto full = std::make_shared<FullTransport>(world.transport);
  auto options = world.client_options();
  options.transport = full;
  const auto client = world.connect(std::move(options));
  full->is_full = true;
  CHECK_THROWS_AS(world.call(*client, "keep", "first"), std::bad_alloc);
  CHECK(client->counts().calls == 0);
  CHECK(client->counts().bytes == 0);
  world.call(*client, "keep", "second");
  world.run();

  REQUIRE(world.kept.size() == 1);
  CHECK(world.kept.back().body() == "second");
  CHECK(client->counts().calls == 1);
}

}  // namespace pv2::testing::no_memory_test
