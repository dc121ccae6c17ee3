// SPDX-License-Identifier: Apache-2.0
//
// One function per record: the fields of a header, those of a state with its messages, and what
// follows from the records of a tree.

#include "watch/persisted_image.h"

#include <pv2/base/json_writer.h>

#include <algorithm>
#include <utility>

#include "core/state_lock.h"
#include "model/rollback_plan.h"
#include "submission/ended_procedure.h"
#include "tree/domains.h"

namespace pv2 {
namespace {

std::string words(WallTime time) { return std::to_string(time.time_since_epoch().count()); }
std::string words(bool value) { return value ? "yes" : "no"; }
std::string words(ProcedureId id) { return id ? std::to_string(id.value) : ""; }
std::string words(const Nonce& nonce) {
  return nonce ? std::to_string(nonce.group) + "/" + std::to_string(nonce.value) : "";
}

std::string words(const LockSet& locks) {
  if (locks.empty()) return {};
  std::string text = "from " + to_string(locks.primary()) +
                     (locks.scope() == LockScope::kStep    ? ", per step:"
                      : locks.scope() == LockScope::kVisit ? ", per visit:"
                                                           : ":");
  for (const LockRequest& request : locks.requests()) {
    text += " " + to_string(request.key) + "/" + std::string(to_string(request.mode));
  }
  return text;
}

std::string words(const LazyVector<UndoEntry>& undo) {
  std::string text;
  for (const UndoEntry& entry : undo) {
    text += (text.empty() ? "" : " ") + std::to_string(entry.step) + "@" +
            std::to_string(entry.sequence.value);
  }
  return text;
}

std::string words(const History& history) {
  std::string text;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const HistoryEntry entry = history.at(i);
    text += (text.empty() ? "" : " ") + std::to_string(entry.step) + "/" +
            std::to_string(entry.attempt) + "/" + std::to_string(static_cast<int>(entry.outcome)) +
            (entry.undo ? " undone@" : "@") + words(entry.at);
  }
  return text;
}

std::string words(const InterruptedMembers* interrupted) {
  if (interrupted == nullptr) return "not said";
  std::string text = "those";
  for (const InterruptedMembers::Range& range : interrupted->ranges()) {
    text += " " + words(range.first) + "-" + words(range.last);
  }
  return text;
}

std::string words(const InboxMessage& message) {
  const bool is_abort = message.kind == InboxMessage::Kind::kAbort;
  return (is_abort ? "abort #" : "signal #") + std::to_string(message.number) + " '" +
         message.name + "' of '" + message.who + "' " + to_hex(message.payload) + "@" +
         words(message.at) + " by commit " + std::to_string(message.sequence.value) +
         (message.to_undo ? " to be undone" : "");
}

std::string words(const Inbox& inbox) {
  std::string text;
  for (const auto& message : inbox.messages) text += (text.empty() ? "" : "; ") + words(*message);
  return text;
}

std::string words(const Fingerprint& fingerprint) {
  return std::to_string(fingerprint.high) + "/" + std::to_string(fingerprint.low) + " of form " +
         std::to_string(static_cast<int>(fingerprint.form));
}

bool has_failed(const Record& record) {
  return record.state == ProcedureState::kFailed || record.state == ProcedureState::kRolledBack;
}

// The fields of one procedure, in the order in which they are added.
class FieldList {
 public:
  void add(std::string_view name, std::string value) {
    fields_.push_back({.name = name, .value = std::move(value)});
  }
  void by_wait(std::string_view name, std::string value) {
    fields_.push_back({.name = name, .value = std::move(value), .by_tree = true, .by_wait = true});
  }
  void by_tree(std::string_view name, std::string value) {
    fields_.push_back({.name = name, .value = std::move(value), .by_tree = true});
  }
  [[nodiscard]] std::vector<PersistedField> take() && { return std::move(fields_); }

 private:
  std::vector<PersistedField> fields_;
};

void add_header(EngineCore& core, const Execution& execution, FieldList& fields)
    PV2_REQUIRES(core.state_mutex) {
  fields.add("type", std::string(execution.name_of_type()));
  const Execution* const parent = execution.parent_execution();
  fields.add("parent", parent != nullptr ? words(parent->id) : "");
  fields.add("root", words(execution.root()->id));
  fields.add("nonce", words(execution.nonce()));
  const auto known = core.state.submissions.nonces.find(execution.nonce());
  fields.add("procedure of its nonce", known ? words(known->id) : "");
  fields.add("fingerprint", known ? words(known->fingerprint) : "");
  fields.add("time of submission", words(execution.submitted));
  fields.add("owner", std::string(execution.owner()));
  fields.add("lock set", words(execution.locks().to_set()));
  fields.add("priority", std::to_string(static_cast<int>(execution.priority)));
  fields.add("visit of the parent that spawned it", std::to_string(execution.place->spawned_at));
  fields.add("failure is reported", words(execution.reports()));
  fields.add("undone beside its siblings", words(execution.undo_order == UndoOrder::kConcurrent));
  fields.add("arguments", to_hex(execution.arguments));
}

void add_failure(const Record& record, FieldList& fields) {
  const Failure none;
  const Failure& failure = record.failure() != nullptr ? *record.failure() : none;
  fields.by_wait("error", failure.error.to_string());
  fields.by_tree("why it is parked", failure.parked.to_string());
  fields.by_wait("why its undo failed", failure.undo.to_string());
  // The sequence orders the failures of a tree. Without a failure it means nothing.
  const bool ordered = !failure.error.ok() && has_failed(record);
  fields.by_tree("commit of its failure", ordered ? std::to_string(failure.sequence.value) : "");
}

void add_state(const Execution& execution, FieldList& fields) {
  const Record& record = execution.record;
  fields.by_wait("state", std::string(to_string(record.state)));
  fields.add("step", std::to_string(record.step));
  fields.by_tree("attempt", std::to_string(record.attempt));
  fields.add("visits", std::to_string(record.visits));
  // A restart that plans a rollback gives back what is held per step or per visit for nothing.
  const bool for_operation = execution.locks().scope() == LockScope::kOperation;
  (fields.*(for_operation ? &FieldList::add : &FieldList::by_tree))("holds its locks",
                                                                    words(record.holds_locks));
  fields.add("past its point of no return", words(record.no_return));
  fields.by_tree("parked", words(record.parked));
  fields.by_wait("awaits beside its deadline", record.deadline ? words(record.awaits) : "");
  fields.add("bypassed", words(record.bypassed));
  fields.add("sent back", words(record.sent_back));
  fields.add("reported", words(record.reported));
  fields.add("an attempt may have had its effect", words(record.unsure));
  fields.by_wait("deadline", record.deadline ? words(*record.deadline) : "");
  fields.by_wait("patience", record.deadline ? std::to_string(record.patience.count()) : "");
  fields.add("undo list", words(record.undo));
  fields.add("history", words(record.history));
  // A restart that finds a failure whose rollback was not planned yet records this at once.
  fields.by_tree("members in the middle of a step", words(record.interrupted()));
  add_failure(record, fields);
  fields.add("time of its record", words(record.updated));
  fields.by_tree("result", to_hex(record.result()));
  fields.add("state fields", to_hex(record.image));
  fields.add("messages", execution.inbox ? words(*execution.inbox) : "");
}

// Adds what follows from the records of the tree.
void add_tree(Execution& execution, FieldList& fields) {
  fields.by_tree("tree is parked", words(is_parked(execution)));
  fields.by_tree("quarantined", words(execution.is_quarantined()));
  const Domain& domain = execution.domain;  // means something only if this is a head
  fields.by_tree("cause", domain.is_stopped() ? domain.rare->cause.to_string() : "");
}

std::vector<PersistedField> fields_of(EngineCore& core, Execution& execution)
    PV2_REQUIRES(core.state_mutex) {
  FieldList fields;
  add_header(core, execution, fields);
  add_state(execution, fields);
  add_tree(execution, fields);
  return std::move(fields).take();
}

// Whether a restart would plan the undo of `member`, perhaps differently than this engine has.
bool is_decided_at_restart(Execution& member) {
  // A member whose parent is over: its fields have no meaning any more.
  if (!member.is_root() && is_over(*member.parent_execution())) return true;
  for (Execution* head = member.head(); head != nullptr; head = head->outer_domain()) {
    const Domain& domain = head->domain;
    if (!domain.is_stopped() || head->is_quarantined()) continue;
    if (!domain.is_undone() && !domain.is_parked()) return true;
    if (domain.is_parked() && !can_be_undone(*head)) return true;
  }
  return false;
}

bool has_nothing_left(Execution& member) {
  const Execution* const failing = failing_domain(member);
  if (failing == nullptr || !has_failed(member.record)) return false;
  if (member.turn().left == 0) return !member.is_head();
  // The record of its last turn may be durable already, and not published.
  const RollbackPlan* const plan = failing->domain.rare->rollback.get();
  return plan != nullptr && plan->has_begun(member) &&
         plan->newest_of(member)->kind == UndoTurn::Kind::kLast;
}

PersistedProcedure image_of(EngineCore& core, Execution& execution) PV2_REQUIRES(core.state_mutex) {
  return {.id = execution.id,
          .root = execution.root()->id,
          .type = std::string(execution.name_of_type()),
          .fields = fields_of(core, execution),
          .decided_at_restart = is_decided_at_restart(execution),
          .has_nothing_left = has_nothing_left(execution),
          .is_failed = failing_domain(execution) != nullptr,
          .ahead_of_record = execution.wait.ahead_of_record};
}

PersistedProcedure image_of(const Completed& completed) {
  const ProcedureResult& result = completed.result;
  PersistedProcedure image;
  image.id = image.root = result.id;
  image.fields = {{"nonce", words(completed.nonce()), false, false},
                  {"age at its end", std::to_string(completed.ended_age.count()), false, false},
                  {"bytes", std::to_string(completed.bytes), false, false},
                  {"state", std::string(to_string(result.state)), false, false},
                  {"error", result.status.to_string(), false, false},
                  {"result", to_hex(result.result), false, false},
                  {"bypassed", words(result.bypassed), false, false},
                  {"time of submission", words(result.submitted), false, false},
                  {"time of its record", words(result.finished), false, false}};
  return image;
}

bool by_id(const PersistedProcedure& one, const PersistedProcedure& other) {
  return one.id < other.id;
}

}  // namespace

PersistedImage PersistedImage::of(EngineCore& core) {
  PersistedImage image;
  {
    StateLock lock(core);
    for (Execution& execution : core.state.live) {
      if (execution.record.state == ProcedureState::kInitializing) continue;  // not durable
      if (execution.leaves()) continue;
      image.live.push_back(image_of(core, execution));
    }
    for (const Completed& completed : core.state.submissions.completed) {
      image.ended.push_back(image_of(completed));
    }
    for (const auto& [key, limit] : core.state.limits) {
      image.limits.push_back({"limit", to_string(key) + " " + std::to_string(limit), false, false});
    }
    image.next_id = core.state.ids.next();
    core.looks.nobody_waits();
  }
  std::sort(image.ended.begin(), image.ended.end(), by_id);
  return image;
}

PersistedProcedure PersistedImage::of_ended(EngineCore& core, ProcedureId id) {
  {
    StateLock lock(core);
    const Completed* const completed = core.state.submissions.completed.find(id);
    if (completed != nullptr) return image_of(*completed);
  }
  const auto stored = read_ended(core, id);
  if (stored.ok()) return image_of(*stored);
  PersistedProcedure nothing;
  nothing.id = nothing.root = id;
  return nothing;
}

}  // namespace pv2
