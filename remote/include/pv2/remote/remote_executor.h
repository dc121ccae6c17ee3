// SPDX-License-Identifier: Apache-2.0
//
// RemoteExecutor: the verbs of an executor that runs elsewhere, behind an ExecutorService. What a
// network loses is asked for again under the same nonce, so a procedure that is submitted once
// runs once. The promises are those of ProcedureExecutor; what a network adds is a third answer,
// "perhaps": no answer came in time (remote_outcome.h).

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/fields.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/engine/explanation.h>
#include <pv2/engine/procedure_info.h>
#include <pv2/engine/procedure_result.h>
#include <pv2/rpc/nonce_source.h>
#include <pv2/rpc/rpc_client.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pv2/remote/remote_outcome.h"

namespace pv2 {

/// What can be submitted from elsewhere: the class of the procedure itself, or a class with the
/// same kType and the same arguments that is no procedure. Only what is declared with f.arg()
/// travels; every other field begins as the server's class makes it.
template <class P>
concept RemotelySubmitted = HasFields<P> && requires {
  { P::kType } -> std::convertible_to<std::string_view>;
};

/// Take the answers of asynchronous verbs, on the loop's thread; must not block.
using ExplanationDone = std::function<void(Result<Explanation>)>;
using PageDone = std::function<void(Result<ProcedurePage>)>;
using FoundDone = std::function<void(Result<ProcedureId>)>;

struct RemoteOptions {
  /// For verbs that have no time limit of their own.
  Duration timeout = std::chrono::seconds(30);
  /// A wait is asked for anew this often, in case its answer was lost. The server keeps one wait
  /// per procedure, so it may be short; it costs a call each time.
  Duration ask_again_after = std::chrono::seconds(10);
  std::shared_ptr<Clock> clock{};  ///< For the end of signals. The system's clock unless given.
};

/// Each verb exists twice. Without a callback it blocks, and fails (kFailedPrecondition) on the
/// loop's thread of the client's transport and if that transport has no thread of its own. With one
/// it returns at once; the ticket is for cancel().
///
/// Thread-safe. The client outlives it. Calls without an outcome go on without this object.
class RemoteExecutor {
 public:
  explicit RemoteExecutor(RpcClient& client, RemoteOptions options = {});
  ~RemoteExecutor();
  RemoteExecutor(const RemoteExecutor&) = delete;
  RemoteExecutor& operator=(const RemoteExecutor&) = delete;

  /// Submits a procedure. kOk: it is on stable storage of the server, and is done or undone even if
  /// both ends die on the next line. kFailed: nothing was begun, and the same nonce may be used
  /// again. Passes on what fields() throws, before anything is sent.
  template <RemotelySubmitted P>
  [[nodiscard]] SubmitOutcome submit(P procedure, RemoteSubmitOptions options = {}) {
    return submit_encoded(P::kType, arguments_of(procedure), options, Attempt::kFirst);
  }
  template <RemotelySubmitted P>
  CallTicket submit(P procedure, RemoteSubmitOptions options, SubmitOutcomeDone done) {
    return submit_encoded(P::kType, arguments_of(procedure), options, Attempt::kFirst,
                          std::move(done));
  }
  /// Goes on with a submission whose outcome is unknown, with the nonce of that outcome, the same
  /// procedure and the same options, also in another process. It is begun if it was not. Here
  /// kFailed is rare, because a refusal says nothing about what was sent before.
  template <RemotelySubmitted P>
  [[nodiscard]] SubmitOutcome resume(const Nonce& nonce, P procedure,
                                     RemoteSubmitOptions options = {}) {
    options.nonce = nonce;
    return submit_encoded(P::kType, arguments_of(procedure), options, Attempt::kResumed);
  }
  template <RemotelySubmitted P>
  CallTicket resume(const Nonce& nonce, P procedure, RemoteSubmitOptions options,
                    SubmitOutcomeDone done) {
    options.nonce = nonce;
    return submit_encoded(P::kType, arguments_of(procedure), options, Attempt::kResumed,
                          std::move(done));
  }
  /// Which procedure was submitted with `nonce`. kNotFound: none is known now; but a copy of a
  /// submission may still be on its way.
  [[nodiscard]] Result<ProcedureId> find(const Nonce& nonce);
  CallTicket find(const Nonce& nonce, FoundDone done);

  /// Waits until the procedure has ended, at this server or, if it goes away, at the next one.
  /// Without a timeout it waits for servers, too, for ever.
  [[nodiscard]] Result<ProcedureResult> wait(ProcedureId id, std::optional<Duration> timeout = {});
  CallTicket wait(ProcedureId id, std::optional<Duration> timeout, ResultCallback done);

  /// As ProcedureExecutor::acknowledge(). If an attempt got no answer and the next one finds the
  /// result gone, this is what was asked for: kOk.
  RemoteOutcome acknowledge(ProcedureId id);
  CallTicket acknowledge(ProcedureId id, RemoteOutcomeDone done);
  /// As ProcedureExecutor::abort(). If an attempt got no answer and the next one finds a tree that
  /// was aborted and has been undone, that is kOk. The result names the caller as the server knows
  /// it; `who` counts only if the server asks nobody for a token.
  RemoteOutcome abort(ProcedureId id, std::string reason = {}, std::string who = {});
  CallTicket abort(ProcedureId id, std::string reason, std::string who, RemoteOutcomeDone done);

  /// As ProcedureExecutor::signal(). However often it is sent, the signal is accepted once at most.
  /// kUnknown also if the server has ended before it answered: signals are not remembered beyond a
  /// server's life, and the next server refuses to guess. Only the receiver can tell then whether
  /// it came.
  RemoteOutcome signal(ProcedureId id, std::string name, std::string payload = {},
                       RemoteSignalOptions options = {});
  void signal(ProcedureId id, std::string name, std::string payload, RemoteSignalOptions options,
              RemoteOutcomeDone done);

  /// As Inspection::list(). A page has at most 1000 procedures, and fewer if they are large;
  /// `limit` 0: 100.
  [[nodiscard]] Result<ProcedurePage> list(const ListFilter& filter = {}, ProcedureId after = {},
                                           std::size_t limit = 0);
  CallTicket list(const ListFilter& filter, ProcedureId after, std::size_t limit, PageDone done);
  /// As Inspection::explain().
  [[nodiscard]] Result<Explanation> explain(ProcedureId id);
  CallTicket explain(ProcedureId id, ExplanationDone done);

  /// Gives up a call (RpcClient::cancel()): its answer is kAborted, as kUnknown if it was sent.
  void cancel(CallTicket ticket);

 private:
  enum class Attempt : std::uint8_t { kFirst, kResumed };
  class SignalCall;
  struct Shared;

  template <class P>
  static std::string arguments_of(P& procedure) {
    std::string bytes;
    encode_fields(procedure, FieldSelection::kArguments, bytes);
    return bytes;
  }
  SubmitOutcome submit_encoded(std::string_view type, std::string arguments,
                               const RemoteSubmitOptions& options, Attempt attempt);
  CallTicket submit_encoded(std::string_view type, std::string arguments,
                            const RemoteSubmitOptions& options, Attempt attempt,
                            SubmitOutcomeDone done);
  [[nodiscard]] CallOptions submit_options(const RemoteSubmitOptions& options, Attempt attempt);
  [[nodiscard]] CallOptions reading() const;
  [[nodiscard]] CallOptions waiting(std::optional<Duration> timeout) const;
  [[nodiscard]] CallOptions repeatable();

  RpcClient& client_;
  const RemoteOptions options_;
  // Shared with signals that are on their way.
  const std::shared_ptr<Shared> shared_;
};

}  // namespace pv2
