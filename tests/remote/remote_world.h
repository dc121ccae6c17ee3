// SPDX-License-Identifier: Apache-2.0
//
// RemoteWorld: an executor, its service, a server, a proxy that loses what it is told to, a client
// and a RemoteExecutor, all on the test's own thread under one manual clock. Server and client may
// end and begin again while the rest goes on.

#pragma once

#include <pv2/remote/executor_service.h>
#include <pv2/remote/remote_executor.h>
#include <pv2/rpc/fault_proxy.h>
#include <pv2/rpc/memory_transport.h>
#include <pv2/rpc/rpc_server.h>
#include <pv2/rpc/scripted_faults.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/engine_world.h"

namespace pv2::testing {

/// Owned by one thread.
class RemoteWorld {
 public:
  EngineWorld engine;
  std::shared_ptr<MemoryTransport> transport = std::make_shared<MemoryTransport>(engine.clock);
  std::shared_ptr<ScriptedFaults> faults = std::make_shared<ScriptedFaults>();
  /// What the proxy does; `faults` unless a test sets another plan before begin().
  std::shared_ptr<FaultPlan> plan = faults;
  /// To be changed before serve() and connect().
  std::vector<BearerToken> tokens{};
  std::string token{};
  ExecutorServiceOptions service_options{};
  /// So many calls of pv2.abort are refused.
  std::size_t refusals = 0;

  std::unique_ptr<ExecutorService> service;
  std::unique_ptr<RpcServer> server;
  std::unique_ptr<FaultProxy> proxy;
  std::unique_ptr<RpcClient> client;
  std::unique_ptr<RemoteExecutor> remote;

  ~RemoteWorld() {
    disconnect();
    proxy.reset();
    stop_serving();
    engine.close();
  }

  /// Opens everything, with jobs "a" and "b" that need nothing but their three steps, and "w",
  /// whose first step waits for a signal called "go".
  void begin() {
    engine.world.scripts["a"] = {};
    engine.world.scripts["b"] = {};
    engine.world.scripts["w"] = {.run = [](JobRun& run) -> std::optional<Outcome> {
      if (run.step != 1) return usual();
      const auto signal = run.ctx.signal("go");
      if (!signal) return Say::wait();
      run.note += *signal + ";";
      run.world.journal.note("got " + *signal);
      return usual();
    }};
    engine.open();
    serve();
    auto opened = FaultProxy::open(
        {.transport = transport.get(), .listen = "proxy:1", .target = "server:1", .plan = plan});
    REQUIRE(opened.status().to_string() == "OK");
    proxy = *std::move(opened);
    connect();
  }

  void serve(const std::string& address = "server:1") {
    service_options.clock = engine.clock;
    service = std::make_unique<ExecutorService>(engine.executor(), service_options);
    RpcServerOptions options{.transport = transport,
                             .address = address,
                             .tokens = tokens,
                             .log = [](LogLevel, std::string_view) {}};
    service->add_to(options.methods);
    RpcHandler& abort = options.methods["pv2.abort"];
    abort = [this, inner = abort](IncomingCall call) {
      if (refusals == 0) return inner(std::move(call));
      --refusals;
      call.refuse(Status(StatusCode::kUnavailable, "not just now"));
    };
    auto opened = RpcServer::open(std::move(options));
    REQUIRE(opened.status().to_string() == "OK");
    server = *std::move(opened);
  }
  void stop_serving() {
    server.reset();
    service.reset();
  }
  /// The process of the server dies, and another one goes on with its disk.
  void crash_server() {
    stop_serving();
    engine.crash_and_open();
    serve();
  }

  void connect(std::vector<std::string> addresses = {"proxy:1"}) {
    auto opened = RpcClient::open(
        {.transport = transport, .addresses = std::move(addresses), .token = token, .seed = 1});
    REQUIRE(opened.status().to_string() == "OK");
    client = *std::move(opened);
    remote = std::make_unique<RemoteExecutor>(*client, RemoteOptions{.clock = engine.clock});
  }
  void disconnect() {
    remote.reset();
    client.reset();
  }

  /// Runs all that can happen without time passing.
  void settle() {
    do {
      transport->run_until_idle();
      engine.run();
    } while (transport->run_until_idle() != 0);
  }
  /// Lets time pass until `done`, for two minutes at most.
  template <class Done>
  void run_until(Done&& done) {
    settle();
    for (int i = 0; i < 12'000 && !done(); ++i) {
      transport->run_for(std::chrono::milliseconds(10));
      settle();
    }
    REQUIRE(done());
  }
  /// Begins a verb with `begin(callback)`, and returns its answer.
  template <class T, class Begin>
  T answer(Begin&& begin) {
    const auto value = std::make_shared<std::optional<T>>();
    begin([value](T given) { value->emplace(std::move(given)); });
    run_until([&] { return value->has_value(); });
    return **value;
  }

  SubmitOutcome submit(const std::string& job, RemoteSubmitOptions options = {}) {
    return answer<SubmitOutcome>(
        [&](auto done) { remote->submit(Job(engine.world, job), options, std::move(done)); });
  }
  SubmitOutcome resume(const Nonce& nonce, const std::string& job,
                       RemoteSubmitOptions options = {}) {
    return answer<SubmitOutcome>([&](auto done) {
      remote->resume(nonce, Job(engine.world, job), options, std::move(done));
    });
  }
  Result<ProcedureResult> wait(ProcedureId id, std::optional<Duration> timeout = {}) {
    return answer<Result<ProcedureResult>>(
        [&](auto done) { remote->wait(id, timeout, std::move(done)); });
  }
  Result<ProcedureId> find(const Nonce& nonce) {
    return answer<Result<ProcedureId>>([&](auto done) { remote->find(nonce, std::move(done)); });
  }
  RemoteOutcome acknowledge(ProcedureId id) {
    return answer<RemoteOutcome>([&](auto done) { remote->acknowledge(id, std::move(done)); });
  }
  RemoteOutcome abort(ProcedureId id, const std::string& reason = {}) {
    return answer<RemoteOutcome>(
        [&](auto done) { remote->abort(id, reason, "me", std::move(done)); });
  }
  RemoteOutcome signal(ProcedureId id, const std::string& payload, RemoteSignalOptions options = {},
                       const std::string& name = "go") {
    return answer<RemoteOutcome>(
        [&](auto done) { remote->signal(id, name, payload, options, std::move(done)); });
  }

  /// The next frames of `kind` about `method` are lost.
  void lose(FrameKind kind, const std::string& method, std::uint64_t times = 1) {
    REQUIRE(
        faults->add({.kind = kind, .method = method, .times = times, .fate = {.copies = 0}}).ok());
  }
  [[nodiscard]] std::size_t count(std::string_view entry) const {
    return engine.world.journal.count(entry);
  }
};

/// "OK", "FAILED KEY_REUSED", "UNKNOWN DEADLINE_EXCEEDED".
template <class Outcome>
[[nodiscard]] std::string words(const Outcome& outcome) {
  using Kind = CallOutcome::Kind;
  const std::string code(to_string(outcome.status.code()));
  if (outcome.kind == Kind::kOk) return "OK";
  return (outcome.kind == Kind::kFailed ? "FAILED " : "UNKNOWN ") + code;
}

}  // namespace pv2::testing
