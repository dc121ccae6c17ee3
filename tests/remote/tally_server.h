// SPDX-License-Identifier: Apache-2.0
//
// TallyServer: the smallest server that has something to lose: it adds to one number, and keeps a
// row for each operation, so that a test sees how often each was done. It can be killed.

#pragma once

#include <pv2/idempotency/client_sessions.h>
#include <pv2/idempotency/nonce_rows.h>
#include <pv2/idempotency/row_log.h>
#include <pv2/idempotency/server_nonce_manager.h>
#include <pv2/store/memory_procedure_store.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pv2/remote/once.h"
#include "pv2/remote/session_methods.h"
#include "pv2/rpc/memory_transport.h"
#include "pv2/rpc/rpc_server.h"
#include "support/catch.h"

namespace pv2::testing {

/// Which rule is switched off, so that a simulation can show that it would notice.
enum class TallyFault {
  kNone,
  kForgetsCalls,      ///< Runs each copy that comes.
  kSavesApart,        ///< The outcome is remembered in a batch of its own.
  kAnswersEarly,      ///< Answers before the batch is durable.
  kRefusesWhatItDid,  ///< Says that it did nothing when it does not know.
};

/// The body of a call is the name of an operation. One that begins with "no" fails definitely; one
/// that begins with "refused" is refused with kExpired, the first one when it is taken from `held`.
/// Methods "add" (by nonce) and "session.add". The answer is the number afterwards.
class TallyServer {
 public:
  TallyServer(std::shared_ptr<MemoryDisk> disk, std::shared_ptr<MemoryTransport> transport,
              std::shared_ptr<ManualClock> clock, TallyFault fault = TallyFault::kNone)
      : fault_(fault), disk_(std::move(disk)) {
    auto store = std::make_unique<MemoryProcedureStore>(disk_);
    store_ = store.get();
    rows_ = *StoreRows::open(std::move(store));
    const auto number = rows_->get("tally");
    if (number.ok() && *number) number_ = std::stoull(**number);
    nonces_ = std::make_unique<ServerNonceManager>(NonceManagerOptions{.clock = clock});
    REQUIRE(load_nonces(rows_->store(), *nonces_).ok());
    sessions_ = *ClientSessions::load(*rows_, {.clock = clock, .window = 4});
    RpcServerOptions options{.transport = transport, .address = "server"};
    const auto run = [this](OnceCall call) { this->run(std::move(call)); };
    options.methods["add"] = once_by_nonce(*nonces_, *transport, run);
    options.methods["session.add"] = once_in_session(*sessions_, *transport, run);
    if (fault_ == TallyFault::kForgetsCalls) {
      options.methods["add"] = [this](IncomingCall call) { run_each_copy(std::move(call)); };
    }
    add_session_methods(options.methods, *sessions_);
    server_ = *RpcServer::open(std::move(options));
  }
  /// Is the kill: what is not durable yet is lost.
  ~TallyServer() {
    server_.reset();
    sessions_.reset();
    // Whoever opens the disk next fences this server's store, which would else write what it has
    // when it is closed.
    const auto next = StoreRows::open(std::make_unique<MemoryProcedureStore>(disk_));
    rows_.reset();
    nonces_.reset();
  }
  TallyServer(const TallyServer&) = delete;
  TallyServer& operator=(const TallyServer&) = delete;

  std::vector<OnceCall> held;
  bool was_held = false;
  std::size_t refused = 0;

  /// Makes durable what was committed.
  void pump() { store_->pump(); }
  void pump_some(std::size_t batches) { store_->pump_some(batches); }
  void maintain() {
    sessions_->maintain([](const Status&) {});
  }
  void sweep() {
    const auto over = nonces_->expired(100);
    if (over.empty()) return;
    RowBatch batch;
    erase_nonce_rows(*nonces_, over, batch);
    rows_->commit(std::move(batch), [this, over](const Status& status) {
      if (status.ok()) nonces_->forget(over);
    });
  }
  [[nodiscard]] RpcServer& rpc() { return *server_; }
  [[nodiscard]] ClientSessions& sessions() { return *sessions_; }

 private:
  std::uint64_t add(RowBatch& effect, const std::string& operation) {
    ++number_;
    effect.put(Space::kHost, "tally", std::to_string(number_));
    effect.put(Space::kHost, "did/" + operation + "/" + std::to_string(number_), "x");
    return number_;
  }

  void run(OnceCall call) {
    const std::string operation = call.call().body();
    RowBatch effect;
    if (operation.starts_with("refused")) {
      if (!was_held) {
        was_held = true;
        held.push_back(std::move(call));
        return;
      }
      ++refused;
      return call.refuse(Status(StatusCode::kExpired, "a lease is over"));
    }
    if (operation.starts_with("no")) {
      call.save(effect, Status(StatusCode::kFailedPrecondition, "no: " + operation));
    } else {
      const std::string answer = std::to_string(add(effect, operation));
      if (fault_ == TallyFault::kSavesApart) {
        rows_->commit(std::exchange(effect, {}), [](const Status&) {});
      }
      call.save(effect, answer);
    }
    if (fault_ == TallyFault::kAnswersEarly) {
      rows_->commit(std::move(effect), [](const Status&) {});
      return call.committed({});
    }
    if (fault_ == TallyFault::kRefusesWhatItDid) {
      rows_->commit(std::move(effect), [](const Status&) {});
      return call.refuse({StatusCode::kUnavailable, "try again"});
    }
    rows_->commit(std::move(effect),
                  [call](const Status& status) mutable { call.committed(status); });
  }

  void run_each_copy(IncomingCall call) {
    RowBatch effect;
    const std::string answer = std::to_string(add(effect, call.body()));
    rows_->commit(std::move(effect), [call = std::make_shared<IncomingCall>(std::move(call)),
                                      answer](const Status& status) {
      if (status.ok()) call->reply(answer);
    });
  }

  const TallyFault fault_;
  std::shared_ptr<MemoryDisk> disk_;
  MemoryProcedureStore* store_ = nullptr;
  std::unique_ptr<StoreRows> rows_;
  std::unique_ptr<ServerNonceManager> nonces_;
  std::unique_ptr<ClientSessions> sessions_;
  std::unique_ptr<RpcServer> server_;
  std::uint64_t number_ = 0;  // with everything that was committed, durable or not
};

}  // namespace pv2::testing
