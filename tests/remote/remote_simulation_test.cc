// SPDX-License-Identifier: Apache-2.0
//
// Clients, sessions, nonces, a proxy that loses things and a server that is killed, on one thread
// under a manual clock. The real client, server and proxy; only the network, the disk and the time
// are in memory. Each seed is one history; a seed that finds something finds it again.
//
// Promises: no operation is done twice; who is told "done" gets the answer of the one run; who is
// told "failed" was not done; and when all is quiet, who asks again gets to know.

#include <pv2/base/random.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pv2/rpc/fault_proxy.h"
#include "pv2/rpc/random_faults.h"
#include "pv2/rpc/rpc_client.h"
#include "pv2/rpc/rpc_session.h"
#include "pv2/testing/seeds.h"
#include "remote/tally_server.h"
#include "support/catch.h"

namespace pv2::testing::remote_simulation_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Kind = CallOutcome::Kind;

/// What a client wants done, and what it knows of it.
struct Operation {
  std::string name;
  bool in_session = false;
  Nonce nonce;
  std::uint64_t number = 0;  // in its session
  int client = 0;
  std::optional<CallOutcome> outcome;
  bool session_ended = false;  // nobody can ask any more
  std::optional<WallTime> expires_at;
  bool is_forgotten = false;  // the server may have done and forgotten it, and says so
  SteadyTime asked_at;
  CallTicket ticket;
};

class History {
 public:
  History(std::uint64_t seed, TallyFault fault) : random_(seed), fault_(fault) {
    FaultRates rates{.drop = 0.1,
                     .duplicate = 0.1,
                     .delay = 0.2,
                     .reorder = 0.05,
                     .cut = 0.01,
                     .half_open = 0.002};
    faults_ = *RandomFaults::create({.seed = seed + 1,
                                     .to_server = rates,
                                     .to_client = rates,
                                     .delay_max = seconds(2),
                                     .hold_back_max = seconds(2)});
    begin_server();
    proxy_ = *FaultProxy::open(
        {.transport = transport_.get(), .listen = "proxy", .target = "server", .plan = faults_});
    for (int i = 0; i < 2; ++i) begin_client(i);
  }
  ~History() {
    for (Client& client : clients_) client.end();
    proxy_.reset();
    server_.reset();
  }
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  void play(int moves) {
    for (int i = 0; i < moves; ++i) move();
    settle();
    check();
  }

  std::vector<std::string> findings;

 private:
  struct Client {
    std::unique_ptr<RpcClient> rpc;
    std::unique_ptr<RpcSession> session;
    void end() {
      session.reset();
      rpc.reset();
    }
  };

  void begin_server() {
    server_.reset();
    server_ = std::make_unique<TallyServer>(disk_, transport_, clock_, fault_);
  }
  void begin_client(int index) {
    Client& client = clients_[static_cast<std::size_t>(index)];
    client.rpc = *RpcClient::open({.transport = transport_,
                                   .addresses = {"proxy"},
                                   .attempt_timeout = seconds(1),
                                   .seed = random_.next() | 1});
    client.session =
        *RpcSession::open(*client.rpc, {.token = "client " + std::to_string(++tokens_)});
  }

  void move() {
    switch (random_.below(13)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return ask();
      case 4:
      case 5:
        server_->pump_some(1 + random_.below(3));
        return run_for(milliseconds(random_.below(50)));
      case 6:
        return run_for(milliseconds(random_.below(3000)));
      case 7:
        server_->maintain();
        return server_->sweep();
      case 8:
        if (random_.below(4) == 0) clock_->jump_wall(minutes(random_.below(120)) - minutes(60));
        return server_->pump();
      case 9:
        if (random_.below(3) == 0) begin_server();
        return;
      case 10:
        if (random_.below(40) == 0) run_for(minutes(6));   // sessions expire
        if (random_.below(80) == 0) run_for(minutes(40));  // nonces are forgotten
        return;
      case 11:
        return give_up();
      default:
        return ask_again();
    }
  }

  void ask() {
    auto operation = std::make_shared<Operation>();
    operation->name = (random_.below(8) == 0 ? "no" : "op") + std::to_string(operations_.size());
    operation->in_session = random_.below(2) == 0;
    operation->nonce = {1, operations_.size() + 1};
    operation->client = static_cast<int>(random_.below(2));
    operation->asked_at = clock_->steady_now();
    if (random_.below(2) == 0) {
      operation->expires_at = clock_->wall_now() + minutes(1 + random_.below(20));
    }
    operations_.push_back(operation);
    const Duration timeout =
        random_.below(10) == 0 ? Duration(minutes(50)) : seconds(1 + random_.below(20));
    const CallOptions options{.timeout = timeout};
    if (operation->in_session) {
      session_of(*operation)
          .call("session.add", operation->name, options, [this, operation](SessionOutcome outcome) {
            operation->number = outcome.number;
            take(*operation, std::move(outcome.outcome));
          });
    } else {
      call(operation, options);
    }
  }

  void call(const std::shared_ptr<Operation>& operation, CallOptions options) {
    options.nonce = operation->nonce;
    options.expires_at = operation->expires_at;
    operation->ticket = clients_[static_cast<std::size_t>(operation->client)].rpc->call(
        "add", operation->name, std::move(options),
        [this, operation](CallOutcome outcome) { take(*operation, std::move(outcome)); });
  }

  // A client loses its patience.
  void give_up() {
    if (operations_.empty()) return;
    const auto& operation = operations_[random_.below(operations_.size())];
    if (!operation->in_session) {
      return clients_[static_cast<std::size_t>(operation->client)].rpc->cancel(operation->ticket);
    }
    const bool is_unknown = operation->outcome && operation->outcome->kind == Kind::kUnknown;
    if (!is_unknown || operation->session_ended || random_.below(4) != 0) return;
    session_of(*operation).give_up(operation->number);
    operation->session_ended = true;
  }

  // Whether it is too late to ask. The library cannot know that of a nonce without a promise that
  // another process has used before.
  [[nodiscard]] bool is_over(const Operation& operation) const {
    if (operation.in_session) return operation.session_ended;
    if (operation.is_forgotten) return true;
    if (operation.expires_at) return clock_->wall_now() > *operation.expires_at;
    return clock_->steady_now() - operation.asked_at > minutes(15);
  }

  // Somebody who was left without an answer asks, perhaps as another process.
  void ask_again() {
    for (const auto& operation : operations_) {
      if (!operation->outcome || operation->outcome->kind != Kind::kUnknown) continue;
      if (is_over(*operation)) continue;
      ask_again(operation, seconds(20));
      return;
    }
  }
  void ask_again(const std::shared_ptr<Operation>& operation, Duration timeout) {
    operation->outcome.reset();
    CallOptions options{.resumed = true, .timeout = timeout};
    if (!operation->in_session) return call(operation, options);
    session_of(*operation)
        .ask_again(operation->number, "session.add", operation->name, options,
                   [this, operation](SessionOutcome outcome) {
                     take(*operation, std::move(outcome.outcome));
                   });
  }

  RpcSession& session_of(const Operation& operation) {
    return *clients_[static_cast<std::size_t>(operation.client)].session;
  }

  void take(Operation& operation, CallOutcome outcome) {
    if (!operation.in_session && outcome.status.code() == StatusCode::kExpired) {
      operation.is_forgotten = true;
    }
    if (operation.in_session && outcome.was_refused &&
        outcome.status.code() == StatusCode::kExpired) {
      operation.session_ended = true;
      expired_[operation.client] = true;
    }
    // After its session has ended a request is not asked again; what the session says of it then is
    // no answer of the server.
    if (operation.session_ended && outcome.kind == Kind::kFailed && operation.outcome) return;
    operation.outcome = std::move(outcome);
  }

  void run_for(Duration time) {
    transport_->run_for(time);
    for (int client = 0; client < 2; ++client) {
      if (!std::exchange(expired_[client], false)) continue;
      for (const auto& operation : operations_) {
        if (operation->client == client && operation->in_session) operation->session_ended = true;
      }
      clients_[static_cast<std::size_t>(client)].session =
          *RpcSession::open(*clients_[static_cast<std::size_t>(client)].rpc,
                            {.token = "client " + std::to_string(++tokens_)});
    }
  }

  // The network is good, the server lives, and everybody asks until there is an answer.
  void settle() {
    for (const Direction direction : {Direction::kToServer, Direction::kToClient}) {
      REQUIRE(faults_->set_rates(direction, {}).ok());
    }
    proxy_->cut_all();
    for (int round = 0; round < 2000; ++round) {
      server_->pump();
      run_for(seconds(2));
      const auto open =
          std::find_if(operations_.begin(), operations_.end(), [this](const auto& each) {
            return !each->outcome ||
                   (each->outcome->kind == Kind::kUnknown && !this->is_over(*each));
          });
      if (open == operations_.end()) return;
      if ((*open)->outcome) ask_again(*open, seconds(20));
    }
    find("something never ends");
  }

  void check() {
    std::map<std::string, std::string> answers;
    for (const auto& operation : operations_) {
      const std::size_t runs = disk_->rows(Space::kHost, "did/" + operation->name + "/");
      if (runs > 1) find(operation->name + " was done " + std::to_string(runs) + " times");
      if (!operation->outcome) continue;
      const CallOutcome& outcome = *operation->outcome;
      const bool fails = operation->name.starts_with("no");
      if (outcome.ok()) {
        if (runs != 1 || fails) find(operation->name + " was not done, and its client was told so");
        if (!disk_->get(Space::kHost, "did/" + operation->name + "/" + outcome.body)) {
          find(operation->name + " was answered with " + outcome.body +
               ", which is not its answer");
        }
      } else if (outcome.kind == Kind::kFailed && runs != 0) {
        find(operation->name +
             " was done, and its client was told that it failed: " + to_string(outcome));
      }
    }
  }

  void find(std::string what) {
    if (findings.size() < 3) findings.push_back(std::move(what));
  }

  Random random_;
  const TallyFault fault_;
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryTransport> transport_ = std::make_shared<MemoryTransport>(clock_);
  std::shared_ptr<RandomFaults> faults_;
  std::unique_ptr<TallyServer> server_;
  std::unique_ptr<FaultProxy> proxy_;
  std::array<Client, 2> clients_;
  std::array<bool, 2> expired_{};
  int tokens_ = 0;
  std::vector<std::shared_ptr<Operation>> operations_;
};

std::vector<std::string> findings_of(std::uint64_t seed, TallyFault fault = TallyFault::kNone) {
  History history(seed, fault);
  history.play(150);
  return history.findings;
}

}  // namespace

TEST_CASE("clients behind a bad network and a server that is killed lose and repeat nothing") {
  const Seeds seeds = seeds_from_environment(100);
  std::uint64_t seed = seeds.first;
  std::vector<std::string> findings;
  for (; seed < seeds.first + seeds.count && findings.empty(); ++seed) {
    findings = findings_of(seed);
  }
  INFO("seed " << seed - 1);
  CHECK(findings == std::vector<std::string>());
}

TEST_CASE("the simulation notices when a rule is broken") {
  const TallyFault fault = GENERATE(TallyFault::kForgetsCalls, TallyFault::kSavesApart,
                                    TallyFault::kAnswersEarly, TallyFault::kRefusesWhatItDid);
  INFO("fault " << static_cast<int>(fault));
  bool was_found = false;
  for (std::uint64_t seed = 1; seed <= 200 && !was_found; ++seed) {
    was_found = !findings_of(seed, fault).empty();
  }
  CHECK(was_found);
}

}  // namespace pv2::testing::remote_simulation_test
