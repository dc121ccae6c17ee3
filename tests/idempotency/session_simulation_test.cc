// SPDX-License-Identifier: Apache-2.0
//
// Clients, their sessions, a server and a transport that loses, repeats and reorders messages, on
// one thread under a manual clock. The server is killed, clocks jump, sessions expire while
// requests travel. Each seed is one history; a seed that finds something finds it again.
//
// Promises: no request is done twice; a response that a client got is the one of the run that did
// it; a request without a response was done at most once; when all is quiet, each request of a
// client that kept its session has its response.

#include <pv2/base/random.h>
#include <pv2/store/memory_procedure_store.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pv2/idempotency/client_sessions.h"
#include "pv2/idempotency/fingerprint.h"
#include "pv2/testing/seeds.h"
#include "support/catch.h"

namespace pv2::testing::session_simulation_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

/// An operation that a client wants done; it succeeds, or fails definitely.
struct Operation {
  std::uint64_t id = 0;  ///< Unique in a history.
  bool fails = false;
};

struct Request {
  int client = 0;
  bool opens = false;
  std::string token;
  SessionId session;
  std::uint64_t number = 0;
  std::uint64_t first_unacked = 0;
  Operation operation;
};
struct Reply {
  int client = 0;
  bool opens = false;
  std::string token;
  Session session;
  std::uint64_t number = 0;
  bool expired = false;
  bool done = false;  ///< There is a response.
  std::string response;
};

/// What really happened, as a bystander sees it who survives every crash.
struct Truth {
  std::map<std::uint64_t, int> runs;              ///< Per operation: durable runs.
  std::map<std::uint64_t, std::string> response;  ///< Per operation: of its durable run.
  std::vector<std::string> findings;
  void find(const std::string& what) {
    if (findings.size() < 5) findings.push_back(what);
  }
};

class Server {
 public:
  Server(std::shared_ptr<MemoryDisk> disk, std::shared_ptr<ManualClock> clock, Random& random,
         Truth& truth, std::deque<Reply>& replies)
      : disk_(std::move(disk)), random_(random), truth_(truth), replies_(replies) {
    SessionOptions options;
    options.clock = std::move(clock);
    options.window = 4;
    rows_ = *StoreRows::open(std::make_unique<MemoryProcedureStore>(disk_));
    auto loaded = ClientSessions::load(*rows_, options);
    if (!loaded.ok()) {
      truth_.find("a server does not start: " + loaded.status().to_string());
      return;
    }
    sessions_ = *std::move(loaded);
  }
  ~Server() { alive_ = false; }

  /// What was committed becomes durable; batches that were filled are sent, and some of the
  /// requests that have begun are done.
  void sync() {
    rows_->store().pump();
    for (const auto& send : std::exchange(unsent_, {})) send();
    while (!begun_.empty() && random_.below(3) != 0) {
      const auto chosen =
          begun_.begin() + static_cast<std::ptrdiff_t>(random_.below(begun_.size()));
      const auto work = *chosen;
      begun_.erase(chosen);
      work();
    }
  }
  void maintain() {
    if (sessions_) sessions_->maintain([](const Status&) {});
  }

  void take(const Request& request) {
    if (!sessions_) return;
    if (request.opens) return open(request);
    const SessionRequest asked{
        .session = request.session,
        .number = request.number,
        .first_unacked = request.first_unacked,
        .fingerprint = fingerprint_of({"operation", std::to_string(request.operation.id)})};
    sessions_->begin_async(asked, [this, request](SessionAnswer answer) {
      if (!alive_) return;
      if (answer.runs()) return begin(request, std::move(answer.owner));
      Reply reply = reply_to(request);
      reply.expired = answer.refusal == Refusal::kSessionExpired;
      if (answer.response != nullptr) {
        reply.done = true;
        reply.response = text(*answer.response);
      }
      replies_.push_back(std::move(reply));
    });
  }

 private:
  static Reply reply_to(const Request& request) {
    Reply reply;
    reply.client = request.client;
    reply.opens = request.opens;
    reply.token = request.token;
    reply.session.id = request.session;
    reply.number = request.number;
    return reply;
  }
  static std::string text(const Response& response) {
    return response.ok() ? *response : response.status().to_string();
  }
  void open(const Request& request) {
    sessions_->open(request.token, "", 0, [this, request](const Result<Session>& opened) {
      if (!alive_ || !opened.ok()) return;
      Reply reply = reply_to(request);
      reply.session = *opened;
      replies_.push_back(std::move(reply));
    });
  }
  void begin(const Request& request, RequestOwner given) {
    const auto owner = std::make_shared<RequestOwner>(std::move(given));
    const auto work = [this, request, owner] { run(request, std::move(*owner)); };
    random_.below(2) == 0 ? begun_.push_back(work) : work();
  }
  void run(const Request& request, RequestOwner given) {
    const std::uint64_t fate = random_.below(16);
    if (fate == 0) return;                 // dies without a word, before anything was done
    if (fate == 1) return given.refuse();  // too busy
    const auto owner = std::make_shared<RequestOwner>(std::move(given));
    RowBatch effect;
    Response response = std::string();
    // Each run answers something else.
    response = request.operation.fails
                   ? Response(Status(StatusCode::kAlreadyExists, std::to_string(random_.next())))
                   : Response(std::to_string(random_.next()));
    const std::uint64_t later = random_.below(2);
    // One row for each run: that is how a second run is found.
    effect.put(Space::kHost,
               "run/" + std::to_string(request.operation.id) + "/" + std::to_string(random_.next()),
               text(response));
    owner->save(effect, response);
    const auto send = [this, owner, request, response, says_done = fate != 2,
                       effect = std::make_shared<RowBatch>(std::move(effect))] {
      commit(owner, request, response, says_done, std::move(*effect));
    };
    later == 0 ? unsent_.push_back(send) : send();
  }
  void commit(const std::shared_ptr<RequestOwner>& owner, const Request& request,
              const Response& response, bool says_done, RowBatch effect) {
    rows_->commit(std::move(effect), [this, owner, request, response, says_done](const Status& s) {
      if (!alive_ || !s.ok()) return;
      if (!says_done) return;  // dies without a word, with everything done
      owner->done();
      Reply reply = reply_to(request);
      reply.done = true;
      reply.response = text(response);
      replies_.push_back(std::move(reply));
    });
  }

  std::shared_ptr<MemoryDisk> disk_;
  Random& random_;
  Truth& truth_;
  std::deque<Reply>& replies_;
  bool alive_ = true;
  std::vector<std::function<void()>> begun_;   // requests that are being done
  std::vector<std::function<void()>> unsent_;  // batches that are filled and not yet committed
  std::unique_ptr<StoreRows> rows_;
  std::unique_ptr<ClientSessions> sessions_;
};

/// Sends operations under numbers of its session, several at once, again and again.
class Client {
 public:
  Client(int name, Random& random, Truth& truth) : name_(name), random_(random), truth_(truth) {}

  void want(Operation operation) { wanted_.push_back(operation); }

  /// A message that it sends now, if it has one.
  std::optional<Request> next() {
    Request request;
    request.client = name_;
    if (!session_) {
      if (wanted_.empty()) return std::nullopt;
      request.opens = true;
      request.token = token();
      return request;
    }
    while (!wanted_.empty() && next_number_ - first_unacked() < session_->window) {
      outstanding_[next_number_++] = wanted_.front();
      wanted_.pop_front();
    }
    if (!outstanding_.empty() && random_.below(6) == 0) {  // it no longer waits for the oldest
      unknown.insert(outstanding_.begin()->second.id);
      outstanding_.erase(outstanding_.begin());
    }
    if (outstanding_.empty()) return std::nullopt;
    auto chosen = outstanding_.begin();
    std::advance(chosen, random_.below(outstanding_.size()));
    request.session = session_->id;
    request.number = chosen->first;
    request.first_unacked = first_unacked();
    request.operation = chosen->second;
    return request;
  }

  void take(const Reply& reply) {
    if (reply.opens) {
      if (!session_ && reply.token == token()) session_ = reply.session;
      return;
    }
    if (!session_ || reply.session.id != session_->id) return;
    if (reply.expired) {  // what has no response is unknown, and is not sent again
      for (const auto& [number, operation] : outstanding_) unknown.insert(operation.id);
      outstanding_.clear();
      session_.reset();
      next_number_ = 1;
      ++sessions_;
      return;
    }
    const auto asked = outstanding_.find(reply.number);
    if (!reply.done || asked == outstanding_.end()) return;
    const std::uint64_t id = asked->second.id;
    const auto truth = truth_.response.find(id);
    if (truth == truth_.response.end()) {
      truth_.find("a client has a response of operation " + std::to_string(id) +
                  ", which was not done");
    } else if (truth->second != reply.response) {
      truth_.find("operation " + std::to_string(id) + " was answered " + reply.response +
                  ", and its run said " + truth->second);
    }
    answered.insert(id);
    outstanding_.erase(asked);
  }
  [[nodiscard]] bool is_quiet() const { return wanted_.empty() && outstanding_.empty(); }

  std::set<std::uint64_t> answered;
  std::set<std::uint64_t> unknown;

 private:
  [[nodiscard]] std::string token() const {
    return std::to_string(name_) + "." + std::to_string(sessions_);
  }
  [[nodiscard]] std::uint64_t first_unacked() const {
    return outstanding_.empty() ? next_number_ : outstanding_.begin()->first;
  }

  const int name_;
  Random& random_;
  Truth& truth_;
  std::optional<Session> session_;
  int sessions_ = 0;
  std::uint64_t next_number_ = 1;
  std::deque<Operation> wanted_;
  std::map<std::uint64_t, Operation> outstanding_;
};

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) clients_.emplace_back(i, random_, truth_);
    start();
  }

  std::vector<std::string> run() {
    for (int move = 0; move < 150 && truth_.findings.empty(); ++move) one_move();
    settle();
    check();
    return truth_.findings;
  }

 private:
  void start() { server_.emplace(disk_, clock_, random_, truth_, replies_); }
  // Only what was durable survives. What the old server's store drains goes to a disk that nobody
  // reads.
  void kill() {
    const auto image = disk_->clone();
    server_.reset();
    disk_ = image;
    start();
  }
  void sync() {
    server_->sync();
    look_at_runs();
  }
  /// Before any reply is delivered, the bystander looks at what has become durable.
  void look_at_runs() {
    truth_.runs.clear();
    MemoryProcedureStore reader(disk_->clone());
    struct Nobody final : CommitSink {
      void on_committed(CommitList) noexcept override {}
    } nobody;
    if (!reader.recover_lease(nobody).ok()) return;
    (void)reader.scan(Space::kHost, "run/", [&](const StoredRow& row) {
      const std::uint64_t id = std::stoull(std::string(row.key.substr(4)));
      if (++truth_.runs[id] == 2)
        truth_.find("operation " + std::to_string(id) + " was done twice");
      truth_.response[id] = row.value;
      return Status();
    });
  }

  void one_move() {
    const std::uint64_t choice = random_.below(100);
    Client& client = clients_[random_.below(clients_.size())];
    if (choice < 10) {
      client.want({++last_operation_, random_.below(5) == 0});
    } else if (choice < 40) {
      if (auto request = client.next()) requests_.push_back(*std::move(request));
    } else if (choice < 65) {
      deliver(requests_, [&](const Request& request) { server_->take(request); });
    } else if (choice < 80) {
      deliver(replies_, [&](const Reply& reply) {
        clients_[static_cast<std::size_t>(reply.client)].take(reply);
      });
    } else if (choice < 90) {
      sync();
    } else if (choice < 94) {
      kill();
    } else if (choice < 96) {
      clock_->advance(random_.below(4) == 0 ? minutes(6) : seconds(10));
    } else if (choice < 97) {
      clock_->jump_wall(random_.below(2) == 0 ? minutes(90) : -minutes(90));
    } else {
      server_->maintain();
    }
  }
  // Any message may be lost, or delivered and kept to come again.
  template <class Message, class Take>
  void deliver(std::deque<Message>& messages, Take take) {
    if (messages.empty()) return;
    const auto at = messages.begin() + static_cast<std::ptrdiff_t>(random_.below(messages.size()));
    const Message message = *at;
    const std::uint64_t fate = random_.below(10);
    if (fate >= 1) messages.erase(at);
    if (fate < 8) take(message);
  }
  // Faults end. All clients get what they wait for.
  void settle() {
    kill();  // requests whose owner died are known again
    for (int round = 0; round < 1000 && truth_.findings.empty(); ++round) {
      bool quiet = true;
      for (Client& client : clients_) {
        if (auto request = client.next()) server_->take(*request);
        quiet = quiet && client.is_quiet();
      }
      sync();
      while (!replies_.empty()) {
        const Reply reply = replies_.front();
        replies_.pop_front();
        clients_[static_cast<std::size_t>(reply.client)].take(reply);
      }
      if (quiet) return;
      if (round % 50 == 49) kill();  // an owner has died without a word
    }
    if (truth_.findings.empty()) truth_.find("clients wait for ever");
  }
  void check() {
    look_at_runs();
    for (const Client& client : clients_) {
      for (const std::uint64_t id : client.answered) {
        if (truth_.runs[id] != 1) {
          truth_.find("operation " + std::to_string(id) + " was answered, and done " +
                      std::to_string(truth_.runs[id]) + " times");
        }
      }
    }
  }

  Random random_;
  Truth truth_;
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::deque<Request> requests_;
  std::deque<Reply> replies_;
  std::optional<Server> server_;
  std::vector<Client> clients_;
  std::uint64_t last_operation_ = 0;
};

}  // namespace

TEST_CASE("R-01 to R-25: no history of clients, crashes and lost messages breaks a promise") {
  const Seeds seeds = seeds_from_environment(1000);
  std::uint64_t seed = seeds.first;
  std::vector<std::string> findings;
  for (; seed < seeds.first + seeds.count && findings.empty(); ++seed)
    findings = History(seed).run();
  INFO("seed " << seed - 1);
  for (const std::string& finding : findings) UNSCOPED_INFO(finding);
  CHECK(findings.empty());
}

}  // namespace pv2::testing::session_simulation_test
