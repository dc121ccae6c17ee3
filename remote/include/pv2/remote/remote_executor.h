// SPDX-License-Identifier: Apache-2.0
//
// RemoteExecutor: the verbs of an executor that runs elsewhere, behind an ExecutorService. It asks
// again, under the same nonce, for what a network loses, so a procedure that is submitted once runs
// once. The promises are those of ProcedureExecutor; a network adds a third answer, "perhaps": no
// answer came in time (remote_outcome.h).

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/fields.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/engine/explanation.h>
#include <pv2/engine/procedure_info.h>
#include <pv2/engine/procedure_result.h>
#include <pv2/engine/repair.h>
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
#include <vector>

#include "pv2/remote/remote_audit.h"
#include "pv2/remote/remote_lock.h"
#include "pv2/remote/remote_outcome.h"

namespace pv2 {

/// What can be submitted from elsewhere: the class of the procedure itself, or a class with the
/// same kType and the same arguments that is no procedure. Only what is declared with f.arg()
/// travels; every other field begins as the server's class makes it.
template <class P>
concept RemotelySubmitted = HasFields<P> && requires {
  { P::kType } -> std::convertible_to<std::string_view>;
};

/// These take the answers of asynchronous verbs, on the loop's thread. They must not block.
using ExplanationDone = std::function<void(Result<Explanation>)>;
using PageDone = std::function<void(Result<ProcedurePage>)>;
using FoundDone = std::function<void(Result<ProcedureId>)>;
using SignalRunDone = std::function<void(Result<std::uint64_t>)>;
using HistoryDone = std::function<void(Result<std::vector<HistoryEntry>>)>;
using LocksDone = std::function<void(Result<RemoteLocks>)>;
using PreviewDone = std::function<void(Result<std::vector<std::string>>)>;
using AuditDone = std::function<void(Result<RemoteAudit>)>;

struct RemoteOptions {
  /// The time limit of the verbs that have none of their own.
  Duration timeout = std::chrono::seconds(30);
  /// The client asks for a wait anew this often, in case its answer was lost. This time may be
  /// short, because the server keeps one wait per procedure; each time costs a call.
  Duration ask_again_after = std::chrono::seconds(10);
  /// This clock sets the end of a signal that is given none. Without one it is the system's.
  std::shared_ptr<Clock> clock{};
};

/// Each verb exists twice. Without a callback it blocks, and fails (kFailedPrecondition) on the
/// loop's thread of the client's transport and if that transport has no thread of its own. With a
/// callback it returns at once, with a ticket for cancel(). Only signal() returns no ticket,
/// because it makes several calls, one after the other: nothing cancels it but its timeout.
///
/// Thread-safe. The client outlives this object. Calls without an outcome go on without this
/// object.
class RemoteExecutor {
 public:
  explicit RemoteExecutor(RpcClient& client, RemoteOptions options = {});
  ~RemoteExecutor();
  RemoteExecutor(const RemoteExecutor&) = delete;
  RemoteExecutor& operator=(const RemoteExecutor&) = delete;

  /// Submits a procedure. kOk: it is on stable storage of the server, and is done or undone even if
  /// both ends die on the next line. kFailed: this submission began nothing. The same nonce may be
  /// used again, unless the status is kKeyReused: then the nonce names another submission, which
  /// goes on, and this one needs a nonce of its own. submit() passes on what fields() throws,
  /// before it sends anything.
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
  /// procedure and the same options, also in another process. The server begins it if it has not
  /// yet. Here kFailed is rare, because a refusal says nothing about what was sent before.
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
  /// Tells which procedure was submitted with `nonce`. kNotFound: the server knows none now; but a
  /// copy of a submission may still be on its way.
  [[nodiscard]] Result<ProcedureId> find(const Nonce& nonce);
  CallTicket find(const Nonce& nonce, FoundDone done);

  /// Waits until the procedure has ended, at this server or, if it goes away, at the next one.
  /// Without a timeout it waits for servers, too, for ever. The timeout includes the network and
  /// the search for a server, so a timeout of 0 only fails (kDeadlineExceeded). To look whether a
  /// procedure has ended, give the call the time of a round trip.
  [[nodiscard]] Result<ProcedureResult> wait(ProcedureId id, std::optional<Duration> timeout = {});
  CallTicket wait(ProcedureId id, std::optional<Duration> timeout, ResultCallback done);

  /// Does what ProcedureExecutor::acknowledge() does. If an attempt got no answer and the next one
  /// finds the result gone, that is what the caller asked for: kOk.
  RemoteOutcome acknowledge(ProcedureId id);
  CallTicket acknowledge(ProcedureId id, RemoteOutcomeDone done);
  /// Does what ProcedureExecutor::abort() does. If an attempt got no answer and the next one finds
  /// a tree that was aborted and has been undone, that is kOk. The result names the caller as the
  /// server knows it; `who` counts only if the server asks nobody for a token.
  /// A tree that has failed by itself with kAborted counts as aborted there.
  RemoteOutcome abort(ProcedureId id, std::string reason = {}, std::string who = {});
  CallTicket abort(ProcedureId id, std::string reason, std::string who, RemoteOutcomeDone done);

  /// Tells the present run of the service, for a signal that outlives this process. A signal that
  /// has to be sent once, even if its sender dies, is sent like this:
  ///
  ///     run = signal_run()                              the server tells its run
  ///     write down {nonce, run, expires_at}             NonceSource makes the nonce
  ///     signal(..., {.nonce, .expires_at, .run})        by this process or by a later one
  ///
  /// It asks the server each time. kNotSupported: the server tells no run.
  [[nodiscard]] Result<std::uint64_t> signal_run();
  CallTicket signal_run(SignalRunDone done);
  /// Does what ProcedureExecutor::signal() does. The server accepts the signal of one call once at
  /// most, however often the call sends it. It accepts the signals of several calls, and of several
  /// processes, once at most together if all of them have the same nonce, run and expires_at;
  /// kInvalidArgument (as kFailed) says that the options have a part of these three only, and that
  /// this call sent nothing.
  ///
  /// The outcome is kUnknown also if the server has ended before it answered: a service remembers
  /// signals for one run, and the next run refuses to guess (kFenced). Only the receiver can tell
  /// then whether the signal came. If the options name a run, each refusal leaves the outcome
  /// unknown, because an earlier process may have sent the signal.
  RemoteOutcome signal(ProcedureId id, std::string name, std::string payload = {},
                       RemoteSignalOptions options = {});
  void signal(ProcedureId id, std::string name, std::string payload, RemoteSignalOptions options,
              RemoteOutcomeDone done);

  /// Does what Inspection::list() does. A page has at most 1000 procedures, and fewer if they are
  /// large; a `limit` of 0 means 100.
  [[nodiscard]] Result<ProcedurePage> list(const ListFilter& filter = {}, ProcedureId after = {},
                                           std::size_t limit = 0);
  CallTicket list(const ListFilter& filter, ProcedureId after, std::size_t limit, PageDone done);
  /// Does what Inspection::explain() does.
  [[nodiscard]] Result<Explanation> explain(ProcedureId id);
  CallTicket explain(ProcedureId id, ExplanationDone done);
  /// Does what Inspection::history() does.
  [[nodiscard]] Result<std::vector<HistoryEntry>> history(ProcedureId id);
  CallTicket history(ProcedureId id, HistoryDone done);
  /// Does what Inspection::locks() does. Those that do not fit into an answer are counted.
  [[nodiscard]] Result<RemoteLocks> locks();
  CallTicket locks(LocksDone done);

  // What OperatorConsole does.

  [[nodiscard]] Result<std::vector<std::string>> preview(ProcedureId id, RepairVerb verb);
  CallTicket preview(ProcedureId id, RepairVerb verb, PreviewDone done);
  /// Does what OperatorConsole::order_once() does: the client sends the order again under its nonce
  /// until the answer is known or the time is over, and it is carried out once. The note names the
  /// caller as the server knows it; `who` counts only if the server asks nobody for a token.
  ///
  /// If an attempt was lost and a later one is refused, the outcome is unknown: audit() tells. With
  /// kExpired, the tree and its audit are forgotten, and nothing tells. The client sends the order
  /// for as long as its timeout says: RpcClientOptions::nonce_kept does not bound it. Behind an
  /// executor whose store keeps no records nothing tells a copy, and it may be carried out again.
  OrderOutcome order(ProcedureId id, RepairVerb verb, RepairNote note,
                     const RemoteOrderOptions& options = {});
  CallTicket order(ProcedureId id, RepairVerb verb, RepairNote note,
                   const RemoteOrderOptions& options, OrderOutcomeDone done);
  /// The newest entries of the range, as many as fit into an answer.
  [[nodiscard]] Result<RemoteAudit> audit(ProcedureId id, AuditRange range = {});
  CallTicket audit(ProcedureId id, AuditRange range, AuditDone done);

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
  [[nodiscard]] CallOptions ordering(const RemoteOrderOptions& options);

  RpcClient& client_;
  const RemoteOptions options_;
  // Shared with signals that are on their way.
  const std::shared_ptr<Shared> shared_;
};

}  // namespace pv2
