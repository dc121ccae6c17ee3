// SPDX-License-Identifier: Apache-2.0
//
// Each verb checks under the state mutex, numbers and encodes its message, and commits it.
// message_published() continues when the message is durable.

#include "orders/messages.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/effects.h"
#include "core/publisher.h"
#include "core/state_lock.h"
#include "model/check_limits.h"
#include "model/names.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/limits.h"
#include "records/audit_row.h"
#include "records/inbox_codec.h"
#include "records/row_keys.h"
#include "submission/ended_procedure.h"
#include "submission/results.h"
#include "tree/domains.h"
#include "tree/failure.h"

namespace pv2 {
namespace {

std::string cut(std::string text, std::size_t most) {
  if (text.size() > most) text.resize(most);
  return text;
}

// Numbers `message` for `to`, encodes it, and returns its commit.
std::unique_ptr<MessageCommit> make_commit(EngineCore& core, Execution& to,
                                           std::unique_ptr<InboxMessage> message)
    PV2_REQUIRES(core.state_mutex) {
  if (!to.inbox) to.inbox = std::make_unique<Inbox>();
  message->number = to.inbox->next_number++;
  PV2_ASSERT(message->number != 0, "numbers of messages do not wrap around");
  message->at = core.clock.wall_now();
  auto commit = std::make_unique<MessageCommit>();
  commit->to = to.id;
  std::string row;
  encode_message(*message, row);
  commit->batch.insert(Space::kProcedure, inbox_key(to.id, message->number), row);
  commit->message = std::move(message);
  return commit;
}

// Adds the audit entry of an order to the batch of the message that carries the order out.
void add_entry(AuditEntry entry, Execution& root, MessageCommit& commit) {
  PV2_ASSERT(root.is_root() && root.inbox, "an audit entry is kept in the inbox of a root");
  PV2_ASSERT(commit.to == root.id, "the message of an order is sent to the root");
  entry.at = commit.message->at;
  commit.audit = root.inbox->next_number++;
  commit.audited = entry.procedure;
  root.audited = true;
  insert_audit(entry, root.id, commit.audit, commit.batch);
}

// Whether `to` takes no more signals. A succeeded member still takes signals while it is due for
// undoing: its undo may ask for them.
bool has_ended(Execution& to) {
  if (!is_finished(to.record.state)) return false;
  return to.record.state != ProcedureState::kSuccess || !to.is_undone_with_its_tree() ||
         !is_to_be_undone(to);
}

bool end_is_durable(const Execution& root) {
  return is_finished(root.record.state) || root.domain.ending == EndingOrder::kDurable;
}

void wake(EngineCore& core, Execution& execution) PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(execution.phase == Phase::kWaiting, "a procedure that is woken was waiting");
  core.state.timers.cancel(execution);
  core.flush();  // the previous record may just have given its locks back
  core.queue(execution, execution.holds_locks() ? Disposition::kFront : Disposition::kBack);
}

std::unique_ptr<InboxMessage> abort_message(AbortOptions options) {
  auto message = std::make_unique<InboxMessage>();
  message->kind = InboxMessage::Kind::kAbort;
  message->who = cut(std::move(options.who), limits::kWhoBytes);
  message->payload = cut(std::move(options.reason), limits::kWhyBytes);
  return message;
}

// The audit entry of an abort that was not ordered by an operator.
AuditEntry entry_of(ProcedureId root, const InboxMessage& abort) {
  AuditEntry entry;
  entry.verb = RepairVerb::kFailAndRollBack;
  entry.procedure = root;
  entry.who = abort.who;
  entry.why = abort.payload;
  return entry;
}

// The answer to an abort of `target` that needs no message; nullopt: the message is sent.
std::optional<Status> answer_without_message(EngineCore& core, Execution& target, bool is_order)
    PV2_REQUIRES(core.state_mutex) {
  if (Status aside = why_set_aside(core, target.id); !aside.ok()) return aside;
  if (!target.is_root()) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} is a child; abort its root, {}", name_of(target.id),
                              name_of(target.root()->id)));
  }
  if (core.state.orders.aborting.contains(target.id)) return why_not_aborted_anew(target);
  if (target.inbox && target.inbox->abort() != nullptr && !target.domain.is_parked()) {
    // The target was aborted before and is being undone, so a second abort succeeds at once. But an
    // operator's order counts as carried out only together with its audit entry.
    return is_order ? why_not_aborted_anew(target) : Status();
  }
  if (Status refusal = why_not_abortable(target); !refusal.ok()) return refusal;
  return std::nullopt;
}

}  // namespace

void Messages::abort(ProcedureId id, AbortOptions options, Reply<Status> reply) {
  core_.loading.when_over(std::move(reply),
                          [this, id, options = std::move(options)](Reply<Status> later) mutable {
                            abort(id, std::move(options), std::move(later), nullptr);
                          });
}

void Messages::signal(ProcedureId id, std::string name, std::string payload, Reply<Status> reply) {
  core_.loading.when_over(std::move(reply),
                          [this, id, name = std::move(name),
                           payload = std::move(payload)](Reply<Status> later) mutable {
                            send(id, std::move(name), std::move(payload), std::move(later));
                          });
}

void Messages::abort(ProcedureId id, AbortOptions options, Reply<Status> reply,
                     const AuditEntry* entry) {
  publisher_.publish_kept();  // what this thread has acknowledged in a callback is gone
  auto message = abort_message(std::move(options));
  const AuditEntry audit = entry != nullptr ? *entry : entry_of(id, *message);
  Effects effects;
  effects.caller_writes = reply.on == ReplyOn::kWaitingCaller;
  std::optional<Status> answer;
  {
    StateLock lock(core_);
    Execution* const target = core_.find(id);
    if (Status stopped = core_.unavailable(); !stopped.ok()) {
      answer = std::move(stopped);
    } else if (target != nullptr) {
      const auto on_the_way = core_.state.orders.aborting.find(id);
      if (entry == nullptr && on_the_way != core_.state.orders.aborting.end()) {
        on_the_way->second->replies.push_back(std::move(reply));
        return;
      }
      answer = answer_without_message(core_, *target, entry != nullptr);
      if (!answer) {
        PV2_ASSERT(target->phase != Phase::kInserting, "a tree that is aborted is durable");
        auto commit = make_commit(core_, *target, std::move(message));
        commit->replies.push_back(std::move(reply));
        add_entry(audit, *target, *commit);
        core_.state.orders.aborting.emplace(id, commit.get());
        target->domain.abort_accepted = true;  // last, as what comes before may find no memory
        effects.commits.push_back(*commit.release());
      }
    }
  }
  if (!effects.commits.empty()) return publisher_.perform(effects);
  // NOLINTNEXTLINE(bugprone-use-after-move): moved away only together with a commit
  effects.reply(std::move(reply), answer ? *answer : results_.why_not_live(id));
  publisher_.perform(effects);
}

Status why_not_aborted_anew(const Execution& root) {
  if (root.domain.is_parked()) return Status();
  if (root.inbox && root.inbox->abort() != nullptr) {
    return Status(StatusCode::kFailedPrecondition,
                  fmt::format("{} was aborted already, and is being undone", name_of(root.id)));
  }
  if (!root.domain.abort_accepted) return Status();
  return Status(
      StatusCode::kUnavailable,
      fmt::format("{} is just being aborted; look again, or try again", name_of(root.id)));
}

Status Messages::why_no_signal(Execution& to, const InboxMessage& signal,
                               std::size_t bytes_max) const {
  if (to.phase == Phase::kInserting) {
    return Status(StatusCode::kUnavailable, name_of(to.id) + " is just being submitted; try again");
  }
  if (has_ended(to)) {
    return Status(StatusCode::kFailedPrecondition, name_of(to.id) + " has ended already");
  }
  if (is_stand_in(to)) {
    return Status(StatusCode::kFailedPrecondition,
                  name_of(to.id) +
                      " takes no signals, because its record is lost; restore a "
                      "backup, or bypass what is left of its tree");
  }
  const std::size_t signals = to.inbox ? to.inbox->signals : 0;
  const std::size_t bytes = to.inbox ? to.inbox->signal_bytes : 0;
  const std::size_t signals_max = core_.options.max_signals;
  if (signals < signals_max && bytes + Inbox::size_of(signal) <= bytes_max) return Status();
  const std::size_t size = Inbox::size_of(signal);
  if (size > bytes_max) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("a signal of {} bytes is larger than all that {} may have "
                              "(max_signal_bytes {})",
                              size, name_of(to.id), bytes_max));
  }
  return Status(StatusCode::kResourceExhausted,
                fmt::format("{} has {} signals with {} bytes that it has not consumed; with this "
                            "one of {} bytes it would be beyond its limits (max_signals {}, "
                            "max_signal_bytes {})",
                            name_of(to.id), signals, bytes, size, signals_max, bytes_max));
}

void Messages::send(ProcedureId id, std::string name, std::string payload, Reply<Status> reply) {
  publisher_.publish_kept();  // as abort() does
  Effects effects;
  effects.caller_writes = reply.on == ReplyOn::kWaitingCaller;
  if (name.empty() || name.size() > limits::kSignalNameBytes) {
    effects.reply(std::move(reply),
                  Status(StatusCode::kInvalidArgument,
                         fmt::format("the name of a signal has 1 to {} bytes, not {}",
                                     limits::kSignalNameBytes, name.size())));
    return publisher_.perform(effects);
  }
  auto message = std::make_unique<InboxMessage>();
  message->kind = InboxMessage::Kind::kSignal;
  message->name = std::move(name);
  message->payload = std::move(payload);
  // All kept signals together have to fit into one batch, whatever the options say.
  const std::size_t bytes_max =
      std::min(core_.options.max_signal_bytes, record_bytes_max(core_.store_limits) / 2);
  Status refused;
  bool live = true;
  {
    StateLock lock(core_);
    Execution* const to = core_.find(id);
    live = to != nullptr;
    refused = core_.unavailable();
    if (refused.ok() && live) refused = why_set_aside(core_, id);
    if (refused.ok() && live) refused = why_no_signal(*to, *message, bytes_max);
    if (refused.ok() && live) {
      message->to_undo = is_to_be_undone(*to);
      auto commit = make_commit(core_, *to, std::move(message));
      commit->replies.push_back(std::move(reply));
      to->inbox->reserve(*commit->message);  // last, as what comes before may find no memory
      effects.commits.push_back(*commit.release());
    }
  }
  if (!effects.commits.empty()) return publisher_.perform(effects);
  // NOLINTNEXTLINE(bugprone-use-after-move): moved away only together with a commit
  effects.reply(std::move(reply), live || !refused.ok() ? refused : results_.why_not_live(id));
  publisher_.perform(effects);
}

namespace {

bool is_abort(const InboxMessage& message) { return message.kind == InboxMessage::Kind::kAbort; }

// Deletes the rows of a message that came too late.
void delete_rows_of(const MessageCommit& commit, Effects& effects) {
  const InboxMessage& message = *commit.message;
  auto garbage = std::make_unique<GarbageCommit>();
  garbage->rows.push_back(inbox_key(commit.to, message.number));
  if (commit.audit != 0) {
    garbage->rows.push_back(audit_key(commit.to, commit.audit));
    if (commit.audited != commit.to) {
      garbage->rows.push_back(audit_key(commit.audited, commit.audit));
    }
  }
  effects.garbage.push_back(std::move(garbage));
}

void take_effect(EngineCore& core, Execution& to, std::unique_ptr<InboxMessage> message,
                 Effects& effects) PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(to.inbox != nullptr, "a message was sent to an inbox");
  PV2_ASSERT(!is_abort(*message) || (to.is_root() && to.inbox->abort() == nullptr),
             "a root is aborted once, with all its tree");
  const InboxMessage& added = to.inbox->add(std::move(message));
  switch (added.kind) {
    case InboxMessage::Kind::kAbort:
      return abort_tree(core, to, effects);
    case InboxMessage::Kind::kSignal:
      // While `to` is in flight, its next record looks at the inbox. Otherwise the signal stays
      // until a step asks for it. No other signal that `to` waits for is there: it would not wait.
      if (to.phase == Phase::kWaiting && to.inbox->wants(added.name)) wake(core, to);
      return;
  }
}

}  // namespace

void message_published(EngineCore& core, MessageCommit& commit, Effects& effects) {
  const std::unique_ptr<MessageCommit> owned(&commit);
  PV2_ASSERT(commit.message != nullptr, "a message that is published is not null");
  commit.message->sequence = commit.sequence;
  const bool aborts = is_abort(*commit.message);
  if (aborts) core.state.orders.aborting.erase(commit.to);
  Execution* const to = core.find(commit.to);
  Status answer;
  if (to == nullptr || (aborts ? end_is_durable(*to) : has_ended(*to))) {
    answer = Status(StatusCode::kFailedPrecondition,
                    fmt::format("{} ended before the message was durable", name_of(commit.to)));
    if (core.keeps_records) delete_rows_of(commit, effects);
  } else {
    take_effect(core, *to, std::move(commit.message), effects);
  }
  for (Reply<Status>& each : commit.replies) effects.reply(std::move(each), answer);
}

}  // namespace pv2
