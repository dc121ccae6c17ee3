// SPDX-License-Identifier: Apache-2.0
//
// Each verb: check under the mutex, number, encode, commit. message_published() is the other end.

#include "messages.h"

#include <algorithm>
#include <utility>

#include "audit_row.h"
#include "check_limits.h"
#include "inbox_codec.h"
#include "names.h"
#include "pv2/engine/limits.h"
#include "row_keys.h"
#include "tree.h"

namespace pv2 {
namespace {

std::string cut(std::string text, std::size_t most) {
  if (text.size() > most) text.resize(most);
  return text;
}

// The commit of `message`, numbered for `to` and encoded.
std::unique_ptr<MessageCommit> make_commit(EngineCore& core, Execution& to,
                                           std::unique_ptr<InboxMessage> message)
    PV2_REQUIRES(core.state_mutex) {
  if (!to.inbox) to.inbox = std::make_unique<Inbox>();
  message->number = to.inbox->next_number++;
  PV2_ASSERT(message->number != 0, "numbers of messages do not begin anew");
  message->at = core.clock.wall_now();
  auto commit = std::make_unique<MessageCommit>();
  commit->to = to.id;
  std::string row;
  encode_message(*message, row);
  commit->batch.insert(Space::kProcedure, inbox_key(to.id, message->number), row);
  commit->message = std::move(message);
  return commit;
}

// The audit entry goes with the message that carries the order out.
void add_entry(AuditEntry entry, Execution& root, MessageCommit& commit) {
  PV2_ASSERT(root.is_root() && root.inbox, "what is ordered is kept with the root");
  PV2_ASSERT(commit.to == root.id, "an order goes with the message to the root");
  entry.at = commit.message->at;
  commit.audit = root.inbox->next_number++;
  commit.audited = entry.procedure;
  root.audited = true;
  insert_audit(entry, root.id, commit.audit, commit.batch);
}

// Whether no signal can reach it any more. One that has succeeded and is to be undone may ask.
bool has_ended(Execution& to) {
  if (!is_finished(to.record.state)) return false;
  return to.record.state != ProcedureState::kSuccess || !to.is_undone_with_its_tree() ||
         !is_to_be_undone(to);
}

bool end_is_durable(const Execution& root) {
  return is_finished(root.record.state) || root.domain.ending == EndingOrder::kDurable;
}

void wake(EngineCore& core, Execution& execution) PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(execution.phase == Phase::kWaiting, "who is woken waits");
  core.state.timers.cancel(execution);
  core.flush();  // the record before this one may just have given its locks back
  core.queue(execution, execution.holds_locks() ? Disposition::kFront : Disposition::kBack);
}

}  // namespace

void Messages::abort(ProcedureId id, AbortOptions options, Reply<Status> reply,
                     const AuditEntry* entry) {
  auto message = std::make_unique<InboxMessage>();
  message->kind = InboxMessage::Kind::kAbort;
  message->who = cut(std::move(options.who), limits::kWhoBytes);
  message->payload = cut(std::move(options.reason), limits::kWhyBytes);
  AuditEntry own;
  own.verb = RepairVerb::kFailAndRollBack;
  own.procedure = id;
  own.who = message->who;
  own.why = message->payload;
  Effects effects;
  Status answer;
  bool live = true;
  {
    StateLock lock(core_);
    Execution* const root = core_.find(id);
    const auto on_the_way = core_.state.aborting.find(id);
    live = root != nullptr;
    answer = core_.unavailable();
    if (!answer.ok() || !live) {
    } else if (!root->is_root()) {
      answer = Status(StatusCode::kInvalidArgument,
                      name_of(id) + " is a child; abort its root, " + name_of(root->root->id));
    } else if (on_the_way != core_.state.aborting.end()) {
      if (entry == nullptr) {
        on_the_way->second->replies.push_back(std::move(reply));
        return;
      }
      answer = why_not_aborted_anew(*root);
    } else if (root->inbox && root->inbox->abort() != nullptr && !root->domain.is_parked()) {
      // It was aborted before, and is being undone: that is as good as a second abort, but an order
      // is only carried out together with its audit entry.
      if (entry != nullptr) answer = why_not_aborted_anew(*root);
    } else if (answer = why_not_abortable(*root); answer.ok()) {
      PV2_ASSERT(root->phase != Phase::kInserting, "what is aborted is durable");
      root->domain.abort_accepted = true;
      auto commit = make_commit(core_, *root, std::move(message));
      commit->replies.push_back(std::move(reply));
      add_entry(entry != nullptr ? *entry : own, *root, *commit);
      core_.state.aborting.emplace(id, commit.get());
      effects.commits.push_back(*commit.release());
    }
  }
  if (!effects.commits.empty()) return publisher_.perform(effects);
  // NOLINTNEXTLINE(bugprone-use-after-move): moved away only together with a commit
  effects.reply(std::move(reply), live || !answer.ok() ? answer : results_.why_not_live(id));
  publisher_.perform(effects);
}

Status why_not_aborted_anew(const Execution& root) {
  if (root.domain.is_parked()) return Status();
  if (root.inbox && root.inbox->abort() != nullptr) {
    return Status(StatusCode::kFailedPrecondition,
                  name_of(root.id) + " was aborted already, and is being undone");
  }
  if (!root.domain.abort_accepted) return Status();
  return Status(StatusCode::kUnavailable,
                name_of(root.id) + " is just being aborted; look again, or try again");
}

Status Messages::why_no_signal(Execution& to, const InboxMessage& signal,
                               std::size_t bytes_max) const {
  if (to.phase == Phase::kInserting) {
    return Status(StatusCode::kUnavailable, name_of(to.id) + " is just being submitted; try again");
  }
  if (has_ended(to)) {
    return Status(StatusCode::kFailedPrecondition, name_of(to.id) + " has ended already");
  }
  const std::size_t signals = to.inbox ? to.inbox->signals : 0;
  const std::size_t bytes = to.inbox ? to.inbox->signal_bytes : 0;
  const std::size_t signals_max = core_.options.max_signals;
  if (signals < signals_max && bytes + Inbox::size_of(signal) <= bytes_max) return Status();
  if (Inbox::size_of(signal) > bytes_max) {
    return Status(StatusCode::kInvalidArgument,
                  "a signal of " + std::to_string(Inbox::size_of(signal)) +
                      " bytes is larger than all that " + name_of(to.id) +
                      " may have (max_signal_bytes " + std::to_string(bytes_max) + ")");
  }
  return Status(StatusCode::kResourceExhausted,
                name_of(to.id) + " has " + std::to_string(signals) + " signals with " +
                    std::to_string(bytes) + " bytes that it has not consumed; with this one of " +
                    std::to_string(Inbox::size_of(signal)) +
                    " bytes it would be beyond its limits (max_signals " +
                    std::to_string(signals_max) + ", max_signal_bytes " +
                    std::to_string(bytes_max) + ")");
}

void Messages::signal(ProcedureId id, std::string name, std::string payload, Reply<Status> reply) {
  Effects effects;
  if (name.empty() || name.size() > limits::kSignalNameBytes) {
    effects.reply(std::move(reply), Status(StatusCode::kInvalidArgument,
                                           "the name of a signal has 1 to " +
                                               std::to_string(limits::kSignalNameBytes) +
                                               " bytes, not " + std::to_string(name.size())));
    return publisher_.perform(effects);
  }
  auto message = std::make_unique<InboxMessage>();
  message->kind = InboxMessage::Kind::kSignal;
  message->name = std::move(name);
  message->payload = std::move(payload);
  // What is stored has to fit into one batch, whatever the options say.
  const std::size_t bytes_max =
      std::min(core_.options.max_signal_bytes, record_bytes_max(core_.store.limits()) / 2);
  Status refused;
  bool live = true;
  {
    StateLock lock(core_);
    Execution* const to = core_.find(id);
    live = to != nullptr;
    refused = core_.unavailable();
    if (refused.ok() && live) refused = why_no_signal(*to, *message, bytes_max);
    if (refused.ok() && live) {
      if (!to->inbox) to->inbox = std::make_unique<Inbox>();
      to->inbox->reserve(*message);
      message->to_undo = is_to_be_undone(*to);
      auto commit = make_commit(core_, *to, std::move(message));
      commit->replies.push_back(std::move(reply));
      effects.commits.push_back(*commit.release());
    }
  }
  if (!effects.commits.empty()) return publisher_.perform(effects);
  // NOLINTNEXTLINE(bugprone-use-after-move): moved away only together with a commit
  effects.reply(std::move(reply), live || !refused.ok() ? refused : results_.why_not_live(id));
  publisher_.perform(effects);
}

void message_published(EngineCore& core, MessageCommit& commit, Effects& effects) {
  const std::unique_ptr<MessageCommit> owned(&commit);
  PV2_ASSERT(commit.message != nullptr, "what is published is a message");
  InboxMessage& message = *commit.message;
  message.sequence = commit.sequence;
  if (message.kind == InboxMessage::Kind::kAbort) core.state.aborting.erase(commit.to);
  Execution* const to = core.find(commit.to);
  Status answer;
  const bool is_abort = message.kind == InboxMessage::Kind::kAbort;
  if (to == nullptr || (is_abort ? end_is_durable(*to) : has_ended(*to))) {
    answer = Status(StatusCode::kFailedPrecondition,
                    name_of(commit.to) + " ended before the message was durable");
    if (core.keeps_records) {
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
  } else {
    PV2_ASSERT(to->inbox != nullptr, "who is sent a message has an inbox");
    PV2_ASSERT(!is_abort || (to->is_root() && to->inbox->abort() == nullptr),
               "a root is aborted once, with all its tree");
    to->inbox->add(std::move(commit.message));
    switch (message.kind) {
      case InboxMessage::Kind::kAbort:
        abort_tree(core, *to, effects);
        break;
      case InboxMessage::Kind::kSignal:
        // In flight: looked at when the record is published. Not waiting: it is latched.
        if (to->phase == Phase::kWaiting && to->inbox->has_wanted()) wake(core, *to);
        break;
    }
  }
  for (Reply<Status>& each : commit.replies) effects.reply(std::move(each), answer);
}

}  // namespace pv2
