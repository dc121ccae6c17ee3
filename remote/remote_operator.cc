// SPDX-License-Identifier: Apache-2.0
//
// The verbs of RemoteExecutor for operators. Each is a body and what its outcome means; all but
// order() only ask.

#include <utility>

#include "operator_messages.h"
#include "pv2/remote/remote_executor.h"

namespace pv2 {
namespace {

template <class Message>
Result<Message> checked_message(const CallOutcome& outcome) {
  if (!outcome.ok()) return outcome.status;
  auto message = remote::from_bytes<Message>(outcome.body);
  if (!message.ok()) return message.status().with_context("an answer that cannot be read");
  if (Status strange = check(*message); !strange.ok()) return strange;
  return message;
}

Result<std::vector<HistoryEntry>> history_in(const CallOutcome& outcome) {
  auto message = checked_message<remote::HistoryListMessage>(outcome);
  if (!message.ok()) return message.status();
  return remote::to_values<HistoryEntry>(std::move(message->entries));
}

Result<RemoteLocks> locks_in(const CallOutcome& outcome) {
  auto message = checked_message<remote::LockListMessage>(outcome);
  if (!message.ok()) return message.status();
  return RemoteLocks{.locks = remote::to_values<RemoteLock>(std::move(message->locks)),
                     .left_out = static_cast<std::size_t>(message->left_out)};
}

Result<std::vector<std::string>> preview_in(const CallOutcome& outcome) {
  auto message = checked_message<remote::PreviewMessage>(outcome);
  if (!message.ok()) return message.status();
  return std::move(message->lines);
}

Result<RemoteAudit> audit_in(const CallOutcome& outcome) {
  auto message = checked_message<remote::AuditMessage>(outcome);
  if (!message.ok()) return message.status();
  return RemoteAudit{.entries = remote::to_values<AuditEntry>(std::move(message->entries)),
                     .earlier = message->earlier};
}

OrderOutcome order_in(const CallOutcome& outcome) {
  OrderOutcome ordered{.kind = outcome.kind, .status = outcome.status, .nonce = outcome.nonce};
  if (!outcome.ok()) return ordered;
  const auto message = remote::from_bytes<remote::OrderedMessage>(outcome.body);
  if (message.ok()) {
    ordered.replayed = message->replayed;
    return ordered;
  }
  ordered.kind = OrderOutcome::Kind::kUnknown;
  ordered.status = message.status().with_context("an answer that cannot be read");
  return ordered;
}

std::string body_of(ProcedureId id) { return remote::to_bytes(remote::IdMessage{id}); }

std::string body_of(ProcedureId id, AuditRange range) {
  return remote::to_bytes(
      remote::AuditQueryMessage{.id = id, .before = range.before, .limit = range.limit});
}

std::string body_of(ProcedureId id, RepairVerb verb, RepairNote note = {}) {
  return remote::to_bytes(remote::OrderMessage{.id = id,
                                               .verb = verb,
                                               .who = std::move(note.who),
                                               .why = std::move(note.why),
                                               .next_step = note.next_step});
}

}  // namespace

Result<std::vector<HistoryEntry>> RemoteExecutor::history(ProcedureId id) {
  return history_in(client_.call(std::string(remote::kHistory), body_of(id), reading()));
}

CallTicket RemoteExecutor::history(ProcedureId id, HistoryDone done) {
  return client_.call(
      std::string(remote::kHistory), body_of(id), reading(),
      [done = std::move(done)](const CallOutcome& outcome) { done(history_in(outcome)); });
}

Result<RemoteLocks> RemoteExecutor::locks() {
  return locks_in(client_.call(std::string(remote::kLocks), {}, reading()));
}

CallTicket RemoteExecutor::locks(LocksDone done) {
  return client_.call(
      std::string(remote::kLocks), {}, reading(),
      [done = std::move(done)](const CallOutcome& outcome) { done(locks_in(outcome)); });
}

Result<std::vector<std::string>> RemoteExecutor::preview(ProcedureId id, RepairVerb verb) {
  return preview_in(client_.call(std::string(remote::kPreview), body_of(id, verb), reading()));
}

CallTicket RemoteExecutor::preview(ProcedureId id, RepairVerb verb, PreviewDone done) {
  return client_.call(
      std::string(remote::kPreview), body_of(id, verb), reading(),
      [done = std::move(done)](const CallOutcome& outcome) { done(preview_in(outcome)); });
}

OrderOutcome RemoteExecutor::order(ProcedureId id, RepairVerb verb, RepairNote note,
                                   const RemoteOrderOptions& options) {
  return order_in(client_.call(std::string(remote::kOrder), body_of(id, verb, std::move(note)),
                               ordering(options)));
}

CallTicket RemoteExecutor::order(ProcedureId id, RepairVerb verb, RepairNote note,
                                 const RemoteOrderOptions& options, OrderOutcomeDone done) {
  return client_.call(
      std::string(remote::kOrder), body_of(id, verb, std::move(note)), ordering(options),
      [done = std::move(done)](const CallOutcome& outcome) { done(order_in(outcome)); });
}

Result<RemoteAudit> RemoteExecutor::audit(ProcedureId id, AuditRange range) {
  return audit_in(client_.call(std::string(remote::kAudit), body_of(id, range), reading()));
}

CallTicket RemoteExecutor::audit(ProcedureId id, AuditRange range, AuditDone done) {
  return client_.call(
      std::string(remote::kAudit), body_of(id, range), reading(),
      [done = std::move(done)](const CallOutcome& outcome) { done(audit_in(outcome)); });
}

}  // namespace pv2
