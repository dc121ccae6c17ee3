// SPDX-License-Identifier: Apache-2.0
//
// The verbs that block, over real sockets and with the threads of both ends.

#include <pv2/rpc/tcp_transport.h>

#include <future>

#include "remote/remote_world.h"
#include "support/held_scan.h"

namespace pv2::testing::remote_blocking_test {
namespace {

struct BothEnds {
  EngineWorld engine;
  std::unique_ptr<ProcedureExecutor> executor;
  std::shared_ptr<Transport> transport;
  std::unique_ptr<RpcServer> server;
  std::unique_ptr<RpcClient> client;

  BothEnds() {
    engine.world.scripts["a"] = {};
    engine.world.scripts["w"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
      return run.step == 1 && run.ctx.signal("go") == nullptr ? std::optional(Say::wait())
                                                              : usual();
    }};
    executor = open_with_threads(engine, nullptr);
    auto made = tcp_transport();
    REQUIRE(made.status().to_string() == "OK");
    transport = *std::move(made);
    RpcServerOptions options{.transport = transport};
    ExecutorService(*executor).add_to(options.methods);
    auto opened = RpcServer::open(std::move(options));
    REQUIRE(opened.status().to_string() == "OK");
    server = *std::move(opened);
    auto connected = RpcClient::open({.transport = transport, .addresses = {server->address()}});
    REQUIRE(connected.status().to_string() == "OK");
    client = *std::move(connected);
  }
};

}  // namespace

TEST_CASE("the verbs that block do over real sockets what the others do") {
  BothEnds both;
  RemoteExecutor remote(*both.client);
  World& world = both.engine.world;

  const SubmitOutcome first = remote.submit(Job(world, "a"));
  REQUIRE(words(first) == "OK");
  CHECK(remote.wait(first.id)->result == "a done");
  CHECK(*remote.find(first.nonce) == first.id);
  CHECK(remote.resume(first.nonce, Job(world, "a")).replayed);
  CHECK(words(remote.acknowledge(first.id)) == "OK");

  const SubmitOutcome second = remote.submit(Job(world, "w"));
  CHECK(remote.wait(second.id, Duration::zero()).status().code() == StatusCode::kDeadlineExceeded);
  CHECK(remote.list()->procedures.size() == 1);
  CHECK(remote.explain(second.id)->procedures.size() == 1);
  CHECK(*remote.signal_run() != 0);
  CHECK(words(remote.signal(second.id, "go")) == "OK");
  CHECK(remote.wait(second.id)->result == "w done");

  const SubmitOutcome third = remote.submit(Job(world, "w"));
  CHECK(words(remote.abort(third.id)) == "OK");
  CHECK(remote.wait(third.id)->status.code() == StatusCode::kAborted);
}

TEST_CASE("while the store is being loaded a listing is put off, and holds nobody up") {
  BothEnds both;
  const HeldScan::Gate gate;
  const ProcedureId old = both.executor->submit(Job(both.engine.world, "w"))->id;
  both.executor->stop();
  ExecutorOptions options = both.engine.options();
  options.store = std::make_unique<HeldScan>(
      memory(both.engine.disk, {.mode = MemoryStoreOptions::Mode::kThread}), gate);
  options.workers = 2;
  options.clock = nullptr;
  options.log = {};
  options.load = Load::kInBackground;
  const auto executor = open_executor(std::move(options));
  executor->start();
  RpcServerOptions server_options{.transport = both.transport};
  ExecutorService(*executor).add_to(server_options.methods);
  const auto server = RpcServer::open(std::move(server_options)).value();
  const auto client =
      RpcClient::open({.transport = both.transport, .addresses = {server->address()}}).value();
  RemoteExecutor remote(*client);

  std::promise<Result<Explanation>> explained;
  remote.explain(old, [&](Result<Explanation> answer) { explained.set_value(std::move(answer)); });
  const SubmitOutcome submitted = remote.submit(Job(both.engine.world, "a"));
  CHECK(words(submitted) == "OK");
  gate.open();
  CHECK(explained.get_future().get().status().to_string() == "OK");
  CHECK(words(remote.signal(old, "go")) == "OK");
  CHECK(remote.wait(old)->result == "w done");
  CHECK(remote.wait(submitted.id)->result == "a done");
  CHECK(remote.list()->procedures.empty());
}

TEST_CASE("a verb that would block the network's own thread fails") {
  RemoteWorld world;
  world.begin();

  CHECK(words(world.remote->submit(Job(world.engine.world, "a"))) == "FAILED FAILED_PRECONDITION");
  CHECK(words(world.remote->signal({1}, "go")) == "FAILED FAILED_PRECONDITION");
  CHECK(world.remote->wait({1}).status().code() == StatusCode::kFailedPrecondition);
}

}  // namespace pv2::testing::remote_blocking_test
