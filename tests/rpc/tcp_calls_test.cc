// SPDX-License-Identifier: Apache-2.0
//
// Calls over real sockets, from threads that wait for them: what is different from a network in
// memory is that the loops have threads of their own.

#include <pv2/base/latch.h>
#include <pv2/base/mutex.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pv2/rpc/nonce_source.h"
#include "pv2/rpc/rpc_client.h"
#include "pv2/rpc/rpc_server.h"
#include "pv2/rpc/tcp_transport.h"
#include "support/catch.h"

#ifdef PV2_TLS
#include "rpc/test_certificates.h"
#include "support/temporary_directory.h"
#endif

namespace pv2::testing::tcp_calls_test {
namespace {

using std::chrono::minutes;
using Kind = CallOutcome::Kind;

/// Calls that are not answered yet. Thread-safe.
class KeptCalls {
 public:
  void keep(IncomingCall call) PV2_EXCLUDES(calls_mutex_) {
    const MutexLock lock(calls_mutex_);
    calls_.push_back(std::move(call));
    arrived_.notify_all();
  }
  std::vector<IncomingCall> wait_for(std::size_t count) PV2_EXCLUDES(calls_mutex_) {
    const MutexLock lock(calls_mutex_);
    while (calls_.size() < count) arrived_.wait(calls_mutex_);
    return std::exchange(calls_, {});
  }

 private:
  Mutex calls_mutex_;
  CondVar arrived_;
  std::vector<IncomingCall> calls_ PV2_GUARDED_BY(calls_mutex_);
};

struct World {
  KeptCalls kept;
  std::unique_ptr<RpcServer> server;

  explicit World(TcpOptions tcp = {}, std::vector<BearerToken> tokens = {}) {
    RpcServerOptions options{.transport = *tcp_transport(std::move(tcp)),
                             .tokens = std::move(tokens)};
    options.methods["echo"] = [](IncomingCall call) { call.reply(call.body()); };
    options.methods["who"] = [](IncomingCall call) { call.reply(call.caller()); };
    options.methods["keep"] = [this](IncomingCall call) { kept.keep(std::move(call)); };
    server = *RpcServer::open(std::move(options));
  }
  [[nodiscard]] std::unique_ptr<RpcClient> connect(TcpOptions tcp = {},
                                                   std::string token = {}) const {
    return *RpcClient::open({.transport = *tcp_transport(std::move(tcp)),
                             .addresses = {server->address()},
                             .token = std::move(token),
                             .connect_timeout = minutes(1),
                             .attempt_timeout = minutes(5)});
  }
};

using Answer = std::shared_ptr<Latch<CallOutcome>>;
Answer call(RpcClient& client, std::string method, std::string body, CallOptions options = {}) {
  auto answer = std::make_shared<Latch<CallOutcome>>();
  client.call(std::move(method), std::move(body), std::move(options),
              [answer](CallOutcome outcome) { answer->set(std::move(outcome)); });
  return answer;
}

}  // namespace

TEST_CASE("threads share a client, and each waits for its own answers") {
  World world;
  const auto client = world.connect();
  NonceSource nonces;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 500; ++i) {
        const std::string body = std::to_string(thread) + "/" + std::to_string(i);
        const CallOutcome outcome =
            client->call("echo", body, {.nonce = nonces.next(), .timeout = minutes(5)});
        if (outcome.ok() && outcome.body == body) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  CHECK(right == 4 * 500);
  CHECK(client->counts().connections == 1);
  CHECK(client->counts().calls == 0);
  CHECK(world.server->counts().calls_in_flight == 0);
}

TEST_CASE("a call that waits is refused on the thread that would receive its answer") {
  World world;
  const auto client = world.connect();
  CallOutcome inner;
  const auto outer = std::make_shared<Latch<bool>>();
  client->call("echo", "", {}, [&](const CallOutcome&) {
    inner = client->call("echo", "");
    outer->set(true);
  });
  outer->wait();

  CHECK(inner.kind == Kind::kFailed);
  CHECK(inner.status.code() == StatusCode::kFailedPrecondition);
}

TEST_CASE("a server on real sockets that stops answers the calls that are in flight") {
  World world;
  const auto client = world.connect();
  std::vector<Answer> answers;
  for (int i = 0; i < 20; ++i) {
    answers.push_back(call(*client, "keep", std::to_string(i), {.timeout = minutes(5)}));
  }
  std::vector<IncomingCall> calls = world.kept.wait_for(20);
  const auto told = std::make_shared<Latch<StatusCode>>();
  calls[0].on_cancel([told](const Status& why) { told->set(why.code()); });

  const auto stopped = std::make_shared<Latch<bool>>();
  world.server->stop(minutes(5), [stopped] { stopped->set(true); });
  told->wait();
  CHECK(*told->value == StatusCode::kStopping);
  CHECK_FALSE(stopped->has_value());
  for (IncomingCall& each : calls) each.reply(each.body() + " done");
  stopped->wait();

  for (int i = 0; i < 20; ++i) {
    answers[static_cast<std::size_t>(i)]->wait();
    const CallOutcome& outcome = *answers[static_cast<std::size_t>(i)]->value;
    CHECK(outcome.kind == Kind::kOk);
    CHECK(outcome.body == std::to_string(i) + " done");
  }
  CHECK(world.server->counts().connections == 0);
  world.server->stop(minutes(5));  // returns, because all is closed
}

TEST_CASE("a server on real sockets closes calls that outlast its grace, and they may answer") {
  World world;
  const auto client = world.connect();
  const Answer answer = call(*client, "keep", "", {.timeout = minutes(5)});
  std::vector<IncomingCall> calls = world.kept.wait_for(1);

  world.server->stop(std::chrono::milliseconds(1));
  answer->wait();
  world.server.reset();
  calls[0].reply("too late");

  CHECK(answer->value->kind == Kind::kUnknown);
}

#ifdef PV2_TLS

TEST_CASE("over TLS, a client with the token gets in, and the handler sees who calls") {
  const TemporaryDirectory files;
  const TestAuthority authority(files, "authority");
  const CertificateFiles server_files = authority.sign("server", "IP:127.0.0.1");
  const TcpOptions server_tls{.tls = TlsOptions{.certificate_file = server_files.certificate,
                                                .private_key_file = server_files.key}};
  const TcpOptions client_tls{.tls = TlsOptions{.authority_file = authority.certificate()}};
  const std::string token = "a secret of 24 letters..";
  World world(server_tls, {{.token = token, .owner = "anna"}});

  const auto client = world.connect(client_tls, token);
  const CallOutcome who = client->call("who", "", {.timeout = minutes(5)});
  CHECK(who.ok());
  CHECK(who.body == "anna");
  const std::string large(1'000'000, 'x');
  const CallOutcome echo = client->call("echo", large, {.timeout = minutes(5)});
  CHECK((echo.body == large));

  const auto stranger = world.connect(client_tls, "a secret of 24 letters.,");
  const CallOutcome refused = stranger->call("who", "", {.timeout = minutes(5)});
  CHECK(refused.kind == Kind::kFailed);
  CHECK(refused.status.code() == StatusCode::kUnauthenticated);
  CHECK(world.server->counts().turned_away >= 1);
  CHECK(world.server->counts().calls == 2);
}

#endif

}  // namespace pv2::testing::tcp_calls_test
