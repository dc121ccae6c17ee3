// SPDX-License-Identifier: Apache-2.0
//
// Read load() first. Ids grow from parent to child, so "in order of id" is "ancestors first"
// everywhere below.

#include "recovery.h"

#include <algorithm>
#include <utility>

#include "inbox_codec.h"
#include "record_codec.h"
#include "results.h"
#include "step_run.h"
#include "tree.h"

namespace pv2 {
namespace {

std::string procedure(ProcedureId id) { return "procedure " + std::to_string(id.value); }

// What a record of this procedure cannot say, although its checksum is right: nobody could go on
// from there.
Status contradiction(const Execution& execution) {
  const ProcedureState state = execution.state;
  const bool runs = state == ProcedureState::kRunnable || state == ProcedureState::kWaitingTimeout;
  if (runs && execution.step == 0) {
    return Status(StatusCode::kCorruption,
                  "it is " + std::string(to_string(state)) + " but has no step left to run");
  }
  if (state == ProcedureState::kWaitingTimeout && !execution.deadline) {
    return Status(StatusCode::kCorruption, "it waits for a deadline but has none");
  }
  return Status();
}

// Every step that the record names has to be in the table of this program.
Status unknown_step(const Execution& execution) {
  const ProcedureType& type = *execution.type;
  const auto missing = [&type](const char* what, std::uint32_t step) {
    return Status(StatusCode::kNotSupported, std::string(what) + std::to_string(step) + ", which " +
                                                 type.name + " of this program does not have");
  };
  if (execution.step != 0 && type.find_step(execution.step) == nullptr) {
    return missing("it is at step ", execution.step);
  }
  for (const UndoEntry& entry : execution.undo) {
    if (type.find_step(entry.step) == nullptr) {
      return missing("it may have to undo step ", entry.step);
    }
  }
  return Status();
}

// Whether its step may have been begun before the crash. Not without its locks, which a record
// gives it before the step runs; but it may have given them back since, to wait or after an
// attempt.
bool may_have_begun(const Execution& execution, bool held_locks) {
  if (held_locks || execution.locks.empty()) return true;
  for (std::size_t i = execution.history.size(); i-- > 0;) {
    const HistoryEntry last = execution.history.at(i);
    if (is_order(last.outcome)) continue;
    const bool tried =
        last.outcome == Outcome::Kind::kWait || last.outcome == Outcome::Kind::kRetry;
    return tried && last.step == execution.step;
  }
  return false;
}

}  // namespace

Status Recovery::load(Effects& effects) {
  Status status = core_.store.load([this](const StoredRow& row) { return read(row); });
  if (status.ok()) status = finish_reading();
  if (!status.ok()) return status.with_context("loading " + core_.store.name());
  StateLock lock(core_);
  // Every id below the watermark may have been issued, and be in somebody's log.
  core_.state.next_id =
      std::max({highest_id_ + 1, core_.state.durable_watermark, std::uint64_t{1}});
  core_.state.loaded = true;
  link(effects);
  core_.state.nonces_on_disk_only = nonces_ - core_.state.nonces.size();
  restore_locks(effects);
  queue_all(effects);
  return Status();
}

Status Recovery::read(const StoredRow& row) {
  switch (row.space) {
    case Space::kEngine: {
      if (const auto key = parse_limit_key(row.key)) {
        const auto limit = decode_limit(row.value);
        if (!limit.ok()) return limit.status();
        StateLock lock(core_);
        core_.set_limit(*key, *limit);
        return Status();
      }
      if (row.key != kWatermarkKey) return Status();
      const auto next_id = decode_watermark(row.value);
      if (!next_id.ok()) return next_id.status();
      StateLock lock(core_);
      core_.state.durable_watermark = *next_id;
      return Status();
    }
    case Space::kNonce:
      ++nonces_;
      return Status();
    case Space::kHost:
      return Status();
    case Space::kProcedure:
      break;
  }
  const auto key = parse_procedure_key(row.key);
  if (!key) return Status(StatusCode::kCorruption, "a row of a procedure has a malformed key");
  highest_id_ = std::max(highest_id_, key->id.value);
  if (key->kind == RowKind::kInbox) {
    read_message(row, *key);
    return Status();
  }
  if (key->kind == RowKind::kAudit) {
    read_audit(row, *key);
    return Status();
  }
  return read_procedure(row, *key).with_context("record of " + procedure(key->id) + " (commit " +
                                                std::to_string(row.sequence.value) + ")");
}

// The header of a procedure comes before its state.
Status Recovery::read_procedure(const StoredRow& row, const ProcedureKey& key) {
  PartStatus user = PartStatus::kIntact;
  if (key.kind == RowKind::kHeader) {
    Status status = finish_reading();
    if (!status.ok()) return status;
    Loaded loaded;
    loaded.execution = std::make_unique<Execution>();
    Execution& execution = *loaded.execution;
    std::string type_name;
    status = decode_header(row.value, execution, loaded.parent, loaded.root, type_name, user);
    if (!status.ok()) return status;
    if (execution.id != key.id) {
      return Status(StatusCode::kCorruption, "it says that it is " + procedure(execution.id));
    }
    execution.type = core_.options.registry.find(type_name);
    if (execution.type == nullptr) {
      loaded.problem = Status(StatusCode::kNotSupported,
                              "its type '" + type_name + "' is not registered in this program");
      execution.type_name = type_name;
    }
    if (user == PartStatus::kDamaged) {
      loaded.problem = Status(StatusCode::kCorruption, "its arguments do not match their checksum");
    }
    loaded_.push_back(std::move(loaded));
    return Status();
  }
  if (loaded_.empty() || loaded_.back().execution->id != key.id || loaded_.back().has_state) {
    return Status(StatusCode::kCorruption, "there is a state but no header");
  }
  Loaded& loaded = loaded_.back();
  Execution& execution = *loaded.execution;
  const Status status = decode_state(row.value, row.sequence, execution, loaded.held_locks, user);
  if (!status.ok()) return status;
  loaded.has_state = true;
  loaded.state_sequence = row.sequence;
  if (user == PartStatus::kDamaged) {
    loaded.problem =
        Status(StatusCode::kCorruption, "its state fields do not match their checksum");
  }
  if (Status nonsense = contradiction(execution); !nonsense.ok()) {
    loaded.problem = std::move(nonsense);
  } else if (execution.type != nullptr) {
    if (Status unknown = unknown_step(execution); !unknown.ok())
      loaded.problem = std::move(unknown);
  }
  return Status();
}

// The messages of a procedure come after its state.
void Recovery::read_message(const StoredRow& row, const ProcedureKey& key) {
  Loaded* const loaded =
      !loaded_.empty() && loaded_.back().execution->id == key.id && loaded_.back().has_state
          ? &loaded_.back()
          : nullptr;
  // It was on its way when the procedure ended, or its procedure is deleted.
  if (loaded == nullptr ||
      (is_finished(loaded->execution->state) && loaded->state_sequence < row.sequence)) {
    orphans_.emplace_back(row.key);
    return;
  }
  auto message = decode_message(row.value);
  if (message.ok() && message->number != key.number) {
    message = Status(StatusCode::kCorruption,
                     "it says that it is number " + std::to_string(message->number));
  }
  if (!message.ok()) {
    loaded->problem = message.status().with_context("message " + std::to_string(key.number));
    loaded->ended_after_message = true;
    return;
  }
  message->sequence = row.sequence;
  if (message->kind == InboxMessage::Kind::kAbort) loaded->ended_after_message = true;
  auto& inbox = loaded->execution->inbox;
  if (!inbox) inbox = std::make_unique<Inbox>();
  if (message->kind == InboxMessage::Kind::kSignal) inbox->reserve(*message);
  inbox->add(std::make_unique<InboxMessage>(*std::move(message)));
}

// Kept until the result of its root is acknowledged; read only when somebody asks.
void Recovery::read_audit(const StoredRow& row, const ProcedureKey& key) {
  const bool known = !loaded_.empty() && loaded_.back().execution->id == key.id;
  // It came with a message that was on its way when the procedure ended.
  const bool too_late = known && is_finished(loaded_.back().execution->state) &&
                        loaded_.back().state_sequence < row.sequence;
  if (!known || too_late) {
    orphans_.emplace_back(row.key);
    return;
  }
  auto& inbox = loaded_.back().execution->inbox;
  if (!inbox) inbox = std::make_unique<Inbox>();
  inbox->audited = true;
  inbox->next_number = std::max(inbox->next_number, key.number + 1);
}

// What cannot be made from its record is found now, before anything of its tree runs, and not when
// its turn comes. The object is thrown away.
void Recovery::check_fields(Loaded& loaded) {
  if (loaded.checked) return;
  loaded.checked = true;
  if (!loaded.problem.ok() || ended_roots_.contains(loaded.root)) return;
  loaded.problem = object_of(*loaded.execution).status();
}

// Called before the next procedure begins, and at the end.
Status Recovery::finish_reading() {
  if (loaded_.empty()) return Status();
  Loaded& last = loaded_.back();
  const Execution& execution = *last.execution;
  if (!last.has_state) {
    return Status(StatusCode::kCorruption, procedure(execution.id) + " has a header but no state");
  }
  if (last.root != execution.id || !is_finished(execution.state)) {
    check_fields(last);
    return Status();
  }
  // An abort that was durable before the success takes it back; it was told to nobody.
  if (execution.state == ProcedureState::kSuccess && last.ended_after_message) return Status();
  ended_roots_.emplace(execution.id, true);  // its result stays in the store
  {
    StateLock lock(core_);
    core_.state.retention.kept(execution.id, execution.updated, kept_bytes(execution),
                               static_cast<bool>(execution.nonce));
  }
  if (execution.inbox) {
    for (const auto& message : execution.inbox->messages) {
      orphans_.push_back(inbox_key(execution.id, message->number));
    }
  }
  loaded_.pop_back();
  return Status();
}

void Recovery::link(Effects& effects) {
  std::erase_if(loaded_, [this](const Loaded& loaded) {
    if (!ended_roots_.contains(loaded.root)) return false;
    garbage_[loaded.root].push_back(loaded.execution->id);  // the crash came before its rows went
    if (loaded.execution->inbox) {
      for (const auto& message : loaded.execution->inbox->messages) {
        orphans_.push_back(inbox_key(loaded.execution->id, message->number));
      }
    }
    return true;
  });
  core_.state.live.reserve(loaded_.size());
  core_.state.nonces.reserve(loaded_.size());
  for (Loaded& loaded : loaded_) {
    Execution& execution = *loaded.execution;
    core_.state.live.emplace(execution.id, &execution);
    // Ids grow from parent to child, so a relative that counts was linked before.
    Execution* root = loaded.root < execution.id ? core_.find(loaded.root) : nullptr;
    if (root != nullptr && !root->is_root()) root = nullptr;
    Execution* parent = loaded.parent < execution.id ? core_.find(loaded.parent) : nullptr;
    if (parent != nullptr && parent->root != root) parent = nullptr;
    execution.phase = Phase::kIdle;
    execution.started = may_have_begun(execution, loaded.held_locks);
    const bool is_root = loaded.root == execution.id && !loaded.parent;
    if (!is_root && (root == nullptr || parent == nullptr)) {
      loaded.problem =
          Status(StatusCode::kCorruption,
                 "it belongs to " + procedure(root == nullptr ? loaded.root : loaded.parent) +
                     ", of which there is no record");
    }
    execution.root = root != nullptr ? root : &execution;
    execution.torn = !is_root && root == nullptr;
    // Without its parent it still belongs to its root, whose whole tree is frozen with it.
    if (root != nullptr) execution.parent = parent != nullptr ? parent : root;
    if (execution.is_root()) {
      roots_.push_back(&execution);
      if (execution.nonce) {
        core_.state.nonces.emplace(execution.nonce,
                                   NonceEntry{execution.id, execution.fingerprint, nullptr});
      }
      continue;
    }
    Execution& above = *execution.parent_execution();
    for (Execution* head = &above.domain(); head != nullptr; head = head->outer_domain()) {
      head->tree.members.push_back(&execution);
    }
    above.last_spawn = std::max(above.last_spawn, execution.spawned_at);
    // What ended with a child whose failure was reported is undone, whatever its own record says.
    if (is_over(above) && execution.is_undone_with_its_tree()) {
      execution.state = ProcedureState::kRolledBack;
    }
    const bool ended = execution.state == ProcedureState::kSuccess || execution.reported;
    if (!ended) ++above.unfinished_children;
  }
  if (!orphans_.empty()) {
    auto garbage = std::make_unique<GarbageCommit>();
    garbage->rows = std::move(orphans_);
    effects.garbage.push_back(std::move(garbage));
  }
  for (auto& [root, ids] : garbage_) {
    auto garbage = std::make_unique<GarbageCommit>();
    garbage->root = root;
    garbage->left = std::move(ids);
    core_.state.garbage.try_emplace(root);
    effects.garbage.push_back(std::move(garbage));
  }
}

void Recovery::restore_locks(Effects& effects) {
  for (Loaded& loaded : loaded_) {
    Execution& execution = *loaded.execution.release();  // the table of live executions has it
    const bool held = loaded.held_locks && !is_over(execution);
    execution.recorded_locks = held;
    if (held && !execution.locks.empty()) {
      const Status status = core_.scheduler.restore(execution);
      if (!status.ok()) loaded.problem = status.with_context("restoring its locks");
    }
    if (loaded.problem.ok()) continue;
    quarantine_tree(core_, *execution.root, loaded.problem.with_context(procedure(execution.id)),
                    effects);
  }
}

void Recovery::queue_all(Effects& effects) {
  std::stable_partition(roots_.begin(), roots_.end(),
                        [](const Execution* root) { return root->holds_locks(); });
  for (Execution* root : roots_) queue_tree(*root, effects);
}

void Recovery::queue_tree(Execution& root, Effects& effects) {
  if (root.quarantined) return;
  find_failures(root);
  if (joins_make_sense(root, effects)) start_domain(core_, root, effects);
}

// Who has children that are not done waits for them, in a tree that goes forward.
bool Recovery::joins_make_sense(Execution& root, Effects& effects) {
  const auto make_sense = [&](Execution& parent) PV2_REQUIRES(core_.state_mutex) {
    const bool waits = parent.state == ProcedureState::kWaiting;
    if (parent.unfinished_children == 0 || waits || is_over(parent)) return true;
    if (failing_domain(parent) != nullptr) return true;
    quarantine_tree(core_, root,
                    Status(StatusCode::kCorruption, procedure(parent.id) + " is " +
                                                        std::string(to_string(parent.state)) +
                                                        ", but it has children that are not done"),
                    effects);
    return false;
  };
  if (!make_sense(root)) return false;
  return std::all_of(root.tree.members.begin(), root.tree.members.end(),
                     [&](Execution* member)
                         PV2_REQUIRES(core_.state_mutex) { return make_sense(*member); });
}

}  // namespace pv2
