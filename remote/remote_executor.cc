// SPDX-License-Identifier: Apache-2.0
//
// Each verb is a body, the options of a call, and what its outcome means.

#include "pv2/remote/remote_executor.h"

#include <utility>

#include "listing_messages.h"
#include "signal_call.h"
#include "verb_messages.h"

namespace pv2 {
namespace {

using Kind = CallOutcome::Kind;

// The message of an answer. Not to be called if there is none.
template <class Message>
Result<Message> read(const CallOutcome& outcome) {
  auto message = remote::from_bytes<Message>(outcome.body);
  if (message.ok()) return message;
  return message.status().with_context("an answer that cannot be read");
}

// Of a question: what the answer says, or why there is none.
template <class Message>
Result<Message> answer_of(const CallOutcome& outcome) {
  if (!outcome.ok()) return outcome.status;
  return read<Message>(outcome);
}
template <class Message>
Result<Message> checked_answer_of(const CallOutcome& outcome) {
  auto message = answer_of<Message>(outcome);
  if (!message.ok()) return message;
  if (Status strange = check(*message); !strange.ok()) return strange;
  return message;
}

Result<ProcedureId> found_in(const CallOutcome& outcome) {
  const auto message = answer_of<remote::SubmittedMessage>(outcome);
  if (!message.ok()) return message.status();
  return message->id;
}

Result<ProcedureResult> result_in(const CallOutcome& outcome) {
  auto message = checked_answer_of<remote::ResultMessage>(outcome);
  if (!message.ok()) return message.status();
  return std::move(message->value);
}

Result<ProcedurePage> page_in(const CallOutcome& outcome) {
  auto message = checked_answer_of<remote::PageMessage>(outcome);
  if (!message.ok()) return message.status();
  return ProcedurePage{
      .procedures = remote::to_values<ProcedureInfo>(std::move(message->procedures)),
      .next = message->next};
}

Result<Explanation> explanation_in(const CallOutcome& outcome) {
  auto message = checked_answer_of<remote::ExplanationMessage>(outcome);
  if (!message.ok()) return message.status();
  return std::move(message->value);
}

SubmitOutcome submission_in(const CallOutcome& outcome) {
  SubmitOutcome submitted{.kind = outcome.kind, .status = outcome.status, .nonce = outcome.nonce};
  if (!outcome.ok()) return submitted;
  const auto message = read<remote::SubmittedMessage>(outcome);
  if (!message.ok()) {
    submitted.kind = Kind::kUnknown;
    submitted.status = message.status();
    return submitted;
  }
  submitted.id = message->id;
  submitted.replayed = message->replayed;
  return submitted;
}

RemoteOutcome acknowledgement_in(const CallOutcome& outcome) {
  // It was there when an earlier attempt was sent, or had gone before: it is gone, in any case.
  const bool is_gone =
      outcome.kind == Kind::kUnknown && outcome.status.code() == StatusCode::kExpired;
  if (is_gone) return {.kind = Kind::kOk};
  return {.kind = outcome.kind, .status = outcome.status};
}

RemoteOutcome abort_in(const CallOutcome& outcome) {
  if (!outcome.ok()) return {.kind = outcome.kind, .status = outcome.status};
  const auto message = read<remote::AbortedMessage>(outcome);
  if (!message.ok()) return {.kind = Kind::kUnknown, .status = message.status()};
  if (!message->had_ended || outcome.may_be_repeat) return {.kind = Kind::kOk};
  return {.kind = Kind::kFailed,
          .status = Status(StatusCode::kFailedPrecondition,
                           "the procedure was aborted before, and has ended already")};
}

}  // namespace

RemoteExecutor::RemoteExecutor(RpcClient& client, RemoteOptions options)
    : client_(client),
      options_(std::move(options)),
      shared_(std::make_shared<Shared>(client, options_.clock)) {}

RemoteExecutor::~RemoteExecutor() = default;

// --- options of calls

CallOptions RemoteExecutor::submit_options(const RemoteSubmitOptions& options, Attempt attempt) {
  return {.nonce = options.nonce ? options.nonce : shared_->nonces.next(),
          .resumed = attempt == Attempt::kResumed,
          .expires_at = options.expires_at,
          .timeout = options.timeout};
}

CallOptions RemoteExecutor::reading() const {
  return {.read_only = true, .timeout = options_.timeout};
}

CallOptions RemoteExecutor::waiting(std::optional<Duration> timeout) const {
  return {.read_only = true,
          .timeout = timeout.value_or(Duration::max()),
          .attempt_timeout = options_.ask_again_after};
}

// The nonce lets the client send it again. The server does not look at it.
CallOptions RemoteExecutor::repeatable() {
  return {.nonce = shared_->nonces.next(), .nonce_stays = true, .timeout = options_.timeout};
}

// A bypass waits for steps under way, perhaps for hours; a copy that asks again waits with it. The
// audit keeps the nonce as long as the tree, and of a tree that is forgotten no order is carried
// out.
CallOptions RemoteExecutor::ordering(const RemoteOrderOptions& options) {
  return {.nonce = options.nonce ? options.nonce : shared_->nonces.next(),
          .resumed = options.resumed,
          .nonce_stays = true,  // in the audit
          .timeout = options.timeout.value_or(options_.timeout),
          .attempt_timeout = options_.ask_again_after};
}

// --- submit

namespace {

std::string body_of(std::string_view type, std::string arguments,
                    const RemoteSubmitOptions& options) {
  return remote::to_bytes(remote::SubmitMessage{.type = std::string(type),
                                                .arguments = std::move(arguments),
                                                .delay = options.delay,
                                                .start_at = options.start_at});
}

}  // namespace

SubmitOutcome RemoteExecutor::submit_encoded(std::string_view type, std::string arguments,
                                             const RemoteSubmitOptions& options, Attempt attempt) {
  return submission_in(client_.call(std::string(remote::kSubmit),
                                    body_of(type, std::move(arguments), options),
                                    submit_options(options, attempt)));
}

CallTicket RemoteExecutor::submit_encoded(std::string_view type, std::string arguments,
                                          const RemoteSubmitOptions& options, Attempt attempt,
                                          SubmitOutcomeDone done) {
  return client_.call(
      std::string(remote::kSubmit), body_of(type, std::move(arguments), options),
      submit_options(options, attempt),
      [done = std::move(done)](const CallOutcome& outcome) { done(submission_in(outcome)); });
}

// --- the verbs that only ask

Result<ProcedureId> RemoteExecutor::find(const Nonce& nonce) {
  return found_in(client_.call(std::string(remote::kFind),
                               remote::to_bytes(remote::NonceMessage{nonce.group, nonce.value}),
                               reading()));
}

CallTicket RemoteExecutor::find(const Nonce& nonce, FoundDone done) {
  return client_.call(
      std::string(remote::kFind), remote::to_bytes(remote::NonceMessage{nonce.group, nonce.value}),
      reading(), [done = std::move(done)](const CallOutcome& outcome) { done(found_in(outcome)); });
}

Result<ProcedureResult> RemoteExecutor::wait(ProcedureId id, std::optional<Duration> timeout) {
  return result_in(client_.call(std::string(remote::kWait), remote::to_bytes(remote::IdMessage{id}),
                                waiting(timeout)));
}

CallTicket RemoteExecutor::wait(ProcedureId id, std::optional<Duration> timeout,
                                ResultCallback done) {
  return client_.call(
      std::string(remote::kWait), remote::to_bytes(remote::IdMessage{id}), waiting(timeout),
      [done = std::move(done)](const CallOutcome& outcome) { done(result_in(outcome)); });
}

Result<ProcedurePage> RemoteExecutor::list(const ListFilter& filter, ProcedureId after,
                                           std::size_t limit) {
  return page_in(client_.call(
      std::string(remote::kList),
      remote::to_bytes(remote::ListMessage{.filter = filter, .after = after, .limit = limit}),
      reading()));
}

CallTicket RemoteExecutor::list(const ListFilter& filter, ProcedureId after, std::size_t limit,
                                PageDone done) {
  return client_.call(
      std::string(remote::kList),
      remote::to_bytes(remote::ListMessage{.filter = filter, .after = after, .limit = limit}),
      reading(), [done = std::move(done)](const CallOutcome& outcome) { done(page_in(outcome)); });
}

Result<Explanation> RemoteExecutor::explain(ProcedureId id) {
  return explanation_in(client_.call(std::string(remote::kExplain),
                                     remote::to_bytes(remote::IdMessage{id}), reading()));
}

CallTicket RemoteExecutor::explain(ProcedureId id, ExplanationDone done) {
  return client_.call(
      std::string(remote::kExplain), remote::to_bytes(remote::IdMessage{id}), reading(),
      [done = std::move(done)](const CallOutcome& outcome) { done(explanation_in(outcome)); });
}

// --- the verbs that change something

RemoteOutcome RemoteExecutor::acknowledge(ProcedureId id) {
  return acknowledgement_in(client_.call(std::string(remote::kAcknowledge),
                                         remote::to_bytes(remote::IdMessage{id}), repeatable()));
}

CallTicket RemoteExecutor::acknowledge(ProcedureId id, RemoteOutcomeDone done) {
  return client_.call(
      std::string(remote::kAcknowledge), remote::to_bytes(remote::IdMessage{id}), repeatable(),
      [done = std::move(done)](const CallOutcome& outcome) { done(acknowledgement_in(outcome)); });
}

RemoteOutcome RemoteExecutor::abort(ProcedureId id, std::string reason, std::string who) {
  return abort_in(client_.call(std::string(remote::kAbort),
                               remote::to_bytes(remote::AbortMessage{
                                   .id = id, .reason = std::move(reason), .who = std::move(who)}),
                               repeatable()));
}

CallTicket RemoteExecutor::abort(ProcedureId id, std::string reason, std::string who,
                                 RemoteOutcomeDone done) {
  return client_.call(std::string(remote::kAbort),
                      remote::to_bytes(remote::AbortMessage{
                          .id = id, .reason = std::move(reason), .who = std::move(who)}),
                      repeatable(), [done = std::move(done)](const CallOutcome& outcome) {
                        done(abort_in(outcome));
                      });
}

Result<std::uint64_t> RemoteExecutor::signal_run() {
  return shared_->take_run(client_.call(std::string(remote::kRun), {}, reading()));
}

CallTicket RemoteExecutor::signal_run(SignalRunDone done) {
  return client_.call(std::string(remote::kRun), {}, reading(),
                      [shared = shared_, done = std::move(done)](const CallOutcome& outcome) {
                        done(shared->take_run(outcome));
                      });
}

RemoteOutcome RemoteExecutor::signal(ProcedureId id, std::string name, std::string payload,
                                     RemoteSignalOptions options) {
  SignalCall call(*shared_, {.id = id, .name = std::move(name), .payload = std::move(payload)},
                  options);
  while (!call.has_outcome()) {
    SignalCall::Request request = call.next();
    call.take(client_.call(std::move(request.method), std::move(request.body), request.options));
  }
  return call.outcome();
}

void RemoteExecutor::signal(ProcedureId id, std::string name, std::string payload,
                            RemoteSignalOptions options, RemoteOutcomeDone done) {
  auto call = std::make_shared<SignalCall>(
      *shared_,
      remote::SignalMessage{.id = id, .name = std::move(name), .payload = std::move(payload)},
      options);
  if (call->has_outcome()) {  // its options are wrong; outcomes are told on the loop's thread
    return client_.transport().post([outcome = call->outcome(), done = std::move(done)] {
      try {
        if (done) done(outcome);
      } catch (...) {  // NOLINT(bugprone-empty-catch): as CallDone promises
      }
    });
  }
  SignalCall::run(std::move(call), shared_, std::move(done));
}

void RemoteExecutor::cancel(CallTicket ticket) { client_.cancel(ticket); }

}  // namespace pv2
