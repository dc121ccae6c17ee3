// SPDX-License-Identifier: Apache-2.0
//
// KeyedClient: a well-behaved client, for tests. It submits one operation under one nonce, sends it
// again in every life of the executor until it has seen the result, and remembers what it was told.
// It checks what the engine promises to such a client (one id, one run, one result, whatever
// crashed); a broken promise becomes its trouble().

#pragma once

#include <pv2/engine/async_executor.h>
#include <pv2/engine/procedure_executor.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace pv2::testing {

/// Owned by one thread, the one that runs the executor (workers = 0). May be destroyed before the
/// executor is: later answers are dropped.
class KeyedClient {
 public:
  explicit KeyedClient(Nonce nonce);

  /// A life of the executor begins: nothing that was asked before will be answered.
  void begin_life();
  /// Sends the operation, and asks for its result as soon as it is accepted. Every call passes the
  /// same procedure with the same arguments.
  template <ProcedureClass P>
  void submit(ProcedureExecutor& executor, P procedure, std::string owner = {}) {
    executor.async().submit(std::move(procedure), {.nonce = nonce_, .owner = std::move(owner)},
                            [seen = seen_, &executor](const Result<Submitted>& answer) {
                              Seen::submitted(seen, executor, answer);
                            });
  }
  /// Asks for the result of the operation that was accepted before.
  void ask(ProcedureExecutor& executor);
  /// Acknowledges the result. To be called once per life, and only when there is a result.
  void acknowledge(ProcedureExecutor& executor);

  [[nodiscard]] Nonce nonce() const noexcept { return nonce_; }
  /// Set as soon as the client was told that the submission is durable.
  [[nodiscard]] ProcedureId id() const noexcept { return seen_->id; }
  [[nodiscard]] const std::optional<ProcedureResult>& result() const noexcept {
    return seen_->result;
  }
  /// Whether the client was told the result in this life.
  [[nodiscard]] bool told() const noexcept { return seen_->told; }
  /// Whether an acknowledgement is on its way, and whether one was durable.
  [[nodiscard]] bool acknowledging() const noexcept { return seen_->acknowledging; }
  [[nodiscard]] bool acknowledged() const noexcept { return seen_->acknowledged; }
  /// The last refusal that breaks no promise (a limit was reached): the client may send again.
  [[nodiscard]] const Status& refused() const noexcept { return seen_->refused; }
  /// The first broken promise, in words; empty when none was broken.
  [[nodiscard]] const std::string& trouble() const noexcept { return seen_->trouble; }

 private:
  struct Seen {
    ProcedureId id{};
    std::optional<ProcedureResult> result{};
    bool told = false;
    bool acknowledging = false;
    bool acknowledged = false;
    Status refused{};
    std::string trouble{};

    static void submitted(const std::shared_ptr<Seen>& seen, ProcedureExecutor& executor,
                          const Result<Submitted>& answer);
    static void ask(const std::shared_ptr<Seen>& seen, ProcedureExecutor& executor);
    void hear(const Result<ProcedureResult>& answer);
    void blame_the_crash(const Status& status);
    void complain(std::string words);
  };

  Nonce nonce_;
  std::shared_ptr<Seen> seen_;  // shared with the callbacks that are still pending
};

}  // namespace pv2::testing
