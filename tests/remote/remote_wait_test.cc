// SPDX-License-Identifier: Apache-2.0
//
// Waits from elsewhere: many are one for the engine, a client that goes leaves nothing behind, and
// a server that goes does not end a wait.

#include <stdexcept>

#include "remote/remote_world.h"
#include "support/wrapped_store.h"

namespace pv2::testing::remote_wait_test {
namespace {

using namespace std::chrono_literals;

using Answer = std::shared_ptr<std::optional<Result<ProcedureResult>>>;

CallTicket wait(RemoteWorld& world, ProcedureId id, const Answer& answer,
                std::optional<Duration> timeout = {}) {
  return world.remote->wait(id, timeout, [answer](Result<ProcedureResult> result) {
    answer->emplace(std::move(result));
  });
}

// A store of a host whose reads throw for a while.
class ThrowingStore : public WrappedStore {
 public:
  ThrowingStore(std::unique_ptr<ProcedureStore> inner, const bool& throws)
      : WrappedStore(std::move(inner)), throws_(throws) {}
  Result<std::optional<std::string>> get(Space space, std::string_view key) override {
    if (throws_) throw std::runtime_error("no memory");
    return WrappedStore::get(space, key);
  }

 private:
  const bool& throws_;
};

Answer no_answer() { return std::make_shared<std::optional<Result<ProcedureResult>>>(); }

}  // namespace

TEST_CASE("many waits for one procedure are one wait of the engine, and all get the result") {
  RemoteWorld world;
  world.begin();
  const ProcedureId id = world.engine.submit("w");
  std::vector<Answer> answers;
  for (int i = 0; i < 20; ++i) wait(world, id, answers.emplace_back(no_answer()));
  world.settle();
  CHECK(world.service->counts().waits == 20);
  CHECK(world.service->counts().waited_for == 1);

  REQUIRE(world.engine.executor().signal(id, "go", "now").ok());
  world.settle();

  for (const Answer& answer : answers) {
    REQUIRE(answer->has_value());
    CHECK((**answer)->result == "w done");
  }
  CHECK(world.service->counts().waits == 0);
  CHECK(world.service->counts().waited_for == 0);
}

TEST_CASE("a wait that is cancelled, or times out, leaves nothing behind on the server") {
  RemoteWorld world;
  world.begin();
  const ProcedureId id = world.engine.submit("w");
  const Answer first = no_answer();
  const Answer second = no_answer();
  const CallTicket ticket = wait(world, id, first);
  wait(world, id, second, 3s);
  world.settle();
  CHECK(world.service->counts().waits == 2);

  world.remote->cancel(ticket);
  world.settle();
  REQUIRE(first->has_value());
  CHECK((*first)->status().code() == StatusCode::kAborted);
  CHECK(world.service->counts().waits == 1);
  world.run_until([&] { return second->has_value(); });
  CHECK((*second)->status().code() == StatusCode::kDeadlineExceeded);
  world.settle();

  CHECK(world.service->counts().waits == 0);
  CHECK(world.service->counts().waited_for == 0);
  CHECK(world.engine.executor().inspect().live_procedures() == 1);
}

TEST_CASE("a client that dies leaves no wait behind") {
  RemoteWorld world;
  world.begin();
  const ProcedureId id = world.engine.submit("w");
  wait(world, id, no_answer());
  world.settle();
  CHECK(world.service->counts().waits == 1);

  world.disconnect();
  world.settle();

  CHECK(world.service->counts().waits == 0);
  CHECK(world.service->counts().waited_for == 0);
}

TEST_CASE("a long wait whose calls and answers are lost now and then gets its result") {
  RemoteWorld world;
  world.begin();
  const ProcedureId id = world.engine.submit("w");
  const Answer answer = no_answer();
  world.lose(FrameKind::kCall, "pv2.wait", 2);
  world.lose(FrameKind::kReply, "pv2.wait", 2);
  wait(world, id, answer);
  world.transport->run_for(50s);
  world.settle();
  CHECK(world.service->counts().waits == 1);  // each attempt has replaced the one before

  REQUIRE(world.engine.executor().signal(id, "go", "now").ok());
  world.run_until([&] { return answer->has_value(); });

  CHECK((**answer)->result == "w done");
  CHECK(world.faults->rules_left() == 0);
}

TEST_CASE("a wait for what never was, or is forgotten, is answered at once") {
  RemoteWorld world;
  world.begin();
  const ProcedureId id = world.engine.submit("a");
  world.settle();
  REQUIRE(world.engine.executor().acknowledge(id).ok());

  CHECK(world.wait({4711}).status().code() == StatusCode::kNotFound);
  CHECK(world.wait(id).status().code() == StatusCode::kExpired);
  CHECK(world.service->counts().waited_for == 0);
}

TEST_CASE("a wait that the engine throws at is refused, and the next one begins anew") {
  RemoteWorld world;
  world.engine.max_results_in_memory = 0;
  world.begin();
  const ProcedureId id = world.engine.submit("a");
  world.settle();
  bool throws = false;
  world.stop_serving();
  ExecutorOptions options = world.engine.options();
  options.store = std::make_unique<ThrowingStore>(std::move(options.store), throws);
  world.engine.open(std::move(options));
  world.serve();

  throws = true;
  const Answer answer = no_answer();
  wait(world, id, answer, 5s);
  world.settle();
  CHECK(world.service->counts().waits == 0);
  CHECK(world.service->counts().waited_for == 0);
  CHECK_FALSE(answer->has_value());  // the client asks again, because the server refused

  throws = false;
  world.run_until([&] { return answer->has_value(); });
  CHECK((**answer)->result == "a done");
}

TEST_CASE("a result that is too large for an answer is said to be so") {
  RemoteWorld world;
  world.service_options.answer_bytes_max = 100;
  world.engine.world.scripts["big"] = {
      .run = [](JobRun&) { return Say::done(std::string(1000, 'x')); }};
  world.begin();

  CHECK(world.wait(world.engine.submit("big")).status().code() == StatusCode::kNotSupported);
}

TEST_CASE("a wait goes on at another server when the one that it was sent to stops") {
  RemoteWorld world;
  world.begin();
  const bool stops_in_order = GENERATE(true, false);
  const ProcedureId id = world.engine.submit("w");
  world.settle();
  world.disconnect();
  world.connect({"proxy:1", "server:2"});
  const Answer answer = no_answer();
  wait(world, id, answer);
  world.settle();
  CHECK(world.service->counts().waits == 1);

  if (stops_in_order) {
    bool stopped = false;
    world.server->stop(1s, [&stopped] { stopped = true; });
    world.run_until([&] { return stopped; });
    CHECK(world.service->counts().waits == 0);
  }
  world.stop_serving();
  world.engine.crash_and_open();
  world.serve("server:2");
  world.run_until([&] { return world.service->counts().waits == 1; });
  REQUIRE(world.engine.executor().signal(id, "go", "now").ok());
  world.run_until([&] { return answer->has_value(); });

  CHECK((**answer)->result == "w done");
}

TEST_CASE("an executor that stops sends its waiting clients away") {
  RemoteWorld world;
  world.begin();
  const ProcedureId id = world.engine.submit("w");
  const Answer answer = no_answer();
  wait(world, id, answer, 5s);
  world.settle();

  world.engine.executor().stop();
  world.run_until([&] { return answer->has_value(); });

  CHECK(world.service->counts().waits == 0);
  CHECK((*answer)->status().code() == StatusCode::kDeadlineExceeded);
}

}  // namespace pv2::testing::remote_wait_test
