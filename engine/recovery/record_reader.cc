// SPDX-License-Identifier: Apache-2.0
//
// Rows come in order of key: the header of a procedure begins it, and the following rows with the
// same id belong to it: its state, its messages, its orders.

#include "recovery/record_reader.h"

#include <pv2/base/json_writer.h>

#include <algorithm>
#include <utility>

#include "model/names.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"
#include "records/audit_row.h"
#include "records/header_codec.h"
#include "records/inbox_codec.h"
#include "records/object_codec.h"
#include "records/row_keys.h"
#include "records/row_parts.h"
#include "records/state_codec.h"
#include "submission/stored_result.h"

namespace pv2 {
namespace {

// No counter ever gets beyond this. A number above it is damage, so numbers do not go on above it.
constexpr std::uint64_t kNumbersMax = kIdsMax;

// Why no program has written a message or an order with that number; or OK.
Status impossible_number(const ProcedureKey& key) {
  if (key.number != 0 && key.number <= kNumbersMax) return Status();
  return Status(StatusCode::kCorruption, "a message or an order has the number " +
                                             std::to_string(key.number) + ", which none has");
}

// Why no program can go on from this record, although its checksum is right; or OK.
Status contradiction(const Execution& execution) {
  const ProcedureState state = execution.record.state;
  const bool runs = state == ProcedureState::kRunnable || state == ProcedureState::kWaitingTimeout;
  if (runs && execution.record.step == 0) {
    return Status(StatusCode::kCorruption,
                  "it is " + std::string(to_string(state)) + " but has no step left to run");
  }
  if (state == ProcedureState::kWaitingTimeout && !execution.record.deadline) {
    return Status(StatusCode::kCorruption, "it waits for a deadline but has none");
  }
  return Status();
}

// Whether an abort takes the success of `ended` back: the abort was durable before the success, and
// no caller was told of the success.
bool is_taken_back(const LoadedProcedure& ended) {
  return ended.execution->record.state == ProcedureState::kSuccess && ended.ended_after_message;
}

// Cuts the lock set of `execution` to the most that a procedure may have, and returns the error
// that quarantines its tree. Admission refuses such a set, so a record that has one was not written
// by this engine.
Status cut_locks(Execution& execution) {
  const LockSet all = std::exchange(execution.edit_locks(), LockSet());
  LockSet& some = execution.edit_locks().scope(all.scope());
  for (const LockRequest& request : all.requests()) {
    if (some.requests().size() == SchedulerEntry::kMaxLocks) break;
    some.key(request.key, request.mode);
  }
  return Status(StatusCode::kCorruption, "it has " + std::to_string(all.requests().size()) +
                                             " locks, and " +
                                             std::to_string(SchedulerEntry::kMaxLocks) +
                                             " is the most; only so many of them are held");
}

// Why this program cannot go on from the record: it names a step that the type does not have. Or
// OK.
Status unknown_step(const Execution& execution) {
  const ProcedureType& type = *execution.type;
  const auto missing = [&type](const char* what, std::uint32_t step) {
    return Status(StatusCode::kNotSupported, std::string(what) + std::to_string(step) + ", which " +
                                                 type.name + " of this program does not have");
  };
  if (execution.record.step != 0 && type.find_step(execution.record.step) == nullptr) {
    return missing("it is at step ", execution.record.step);
  }
  for (const UndoEntry& entry : execution.record.undo) {
    if (type.find_step(entry.step) == nullptr) {
      return missing("it may have to undo step ", entry.step);
    }
  }
  return Status();
}

}  // namespace

// Also if the row cannot be read: a quarantined procedure keeps its rows, and takes messages.
void go_on_above(const ProcedureKey& key, Execution& execution) {
  auto& inbox = execution.inbox;
  if (!inbox) inbox = std::make_unique<Inbox>();
  if (key.number > kNumbersMax) return;
  inbox->next_number = std::max(inbox->next_number, key.number + 1);
}

Status RecordReader::read(const StoredRow& row) {
  const ProcedureId id = id_in_key(row.key);
  const bool is_first = id != current_;
  if (is_first) {
    if (Status status = finish(); !status.ok()) return status;
    current_ = id;
    is_result_ = false;
    ended_.reset();
  }
  const bool is_set_aside = !read_.unreadable.empty() && read_.unreadable.back().id == id;
  if (id.value < kIdsMax) read_.highest = std::max(read_.highest, id);
  if (is_set_aside) return Status();  // all rows of the procedure are
  Status status = is_first ? read_what_is_left(row) : Status();
  if (status.ok()) status = read_row(row);
  return status.ok() ? status : cannot_read(id, std::move(status));
}

// Fails with `why`, or sets the procedure aside. Then its rows are not touched: its messages are
// not deleted, and it does not count as ended.
Status RecordReader::cannot_read(ProcedureId id, Status why) {
  if (policy_ == UnreadableRecords::kRefuse) return why;
  UnreadableRecord& record = read_.unreadable.emplace_back();
  record.id = id;
  record.why = std::move(why);
  if (is_result_) record.root = id;  // only roots have rows among results
  const auto is_its = [id](std::string_view key) { return id_in_key(key) == id; };
  std::erase_if(read_.orphans, is_its);
  std::erase_if(read_.audit_copies, [&](const AuditCopy& copy) { return is_its(copy.key); });
  if (read_.procedures.empty() || read_.procedures.back().execution->id != id) return Status();
  const LoadedProcedure& loaded = read_.procedures.back();
  record.type = loaded.execution->name_of_type();
  if (loaded.root) record.root = loaded.root;
  record.locks = loaded.execution->locks().to_set();
  read_.procedures.pop_back();
  return Status();
}

// `row` is the first one of its procedure. A message without a header belongs to a root that has
// ended. It was on its way at the end, or it is an abort that was durable before the end and takes
// it back; so the result is read as if it were a live record. An order without a header was carried
// out before the end, or came too late: the sequence of the result tells which.
Status RecordReader::read_what_is_left(const StoredRow& row) {
  const auto key = parse_procedure_key(row.key);
  if (!key) return Status();
  if (key->kind == RowKind::kAudit) {
    const auto audit = decode_audit_place(row.value);
    if (audit.ok() && audit->root) return Status();  // a copy, under a member
    return read_result(key->id, [&](const StoredRow& result) {
      ended_ = result.sequence;
      return Status();
    });
  }
  if (key->kind != RowKind::kInbox) return Status();
  return read_result(key->id, [&](const StoredRow& result) {
    is_result_ = true;
    return read_both_rows(key->id, result);
  });
}

Status RecordReader::read_both_rows(ProcedureId id, const StoredRow& result) {
  const auto rows = split_result(result.value);
  if (!rows) {
    return Status(StatusCode::kCorruption,
                  "the result of " + name_of(id) + " is cut short: its header has no end");
  }
  const auto header = procedure_key(id, RowKind::kHeader);
  const auto state = procedure_key(id, RowKind::kState);
  Status status = read_row({Space::kProcedure, header, rows->header, result.sequence});
  if (!status.ok()) return status;
  return read_row({Space::kProcedure, state, rows->state, result.sequence});
}

// A scan is needed for the sequence of the row. If it found nothing it would pass over all rows
// that were deleted, so get() looks first.
Status RecordReader::read_result(ProcedureId id, const RowVisitor& visit) {
  const auto row = store_.get(Space::kResult, result_key(id));
  if (!row.ok() || !*row) return row.status();
  return store_.scan(Space::kResult, result_key(id), visit);
}

Status RecordReader::read_row(const StoredRow& row) {
  const auto key = parse_procedure_key(row.key);
  if (!key) {
    return Status(StatusCode::kCorruption, "a row of a procedure has a malformed key (" +
                                               to_hex(row.key) + ", commit " +
                                               std::to_string(row.sequence.value) + ")");
  }
  if (key->kind == RowKind::kInbox) {
    read_message(row, *key);
    return Status();
  }
  if (key->kind == RowKind::kAudit) {
    read_audit(row, *key);
    return Status();
  }
  Status status = key->kind == RowKind::kHeader ? read_header(row, *key) : read_state(row, *key);
  if (status.ok()) return status;
  return status.with_context("record of " + name_of(key->id) + " (commit " +
                             std::to_string(row.sequence.value) + ")");
}

LoadedProcedure* RecordReader::last_read(ProcedureId id) {
  if (read_.procedures.empty()) return nullptr;
  LoadedProcedure& last = read_.procedures.back();
  return last.execution->id == id ? &last : nullptr;
}

Status RecordReader::read_header(const StoredRow& row, const ProcedureKey& key) {
  LoadedProcedure loaded;
  HeaderFacts facts;
  loaded.execution = std::make_unique<Execution>();
  Execution& execution = *loaded.execution;
  const Status status = decode_header(row.value, execution, facts);
  if (!status.ok()) return status;
  loaded.parent = facts.parent;
  loaded.root = facts.root;
  if (execution.id != key.id) {
    return Status(StatusCode::kCorruption, "it says that it is " + name_of(execution.id));
  }
  PV2_ASSERT(read_.procedures.empty() || read_.procedures.back().execution->id < execution.id,
             "procedures are read in order of id");
  execution.type = registry_.find(facts.type_name);
  if (execution.type == nullptr) {
    loaded.misfit = Status(StatusCode::kNotSupported, "its type '" + std::string(facts.type_name) +
                                                          "' is not registered in this program");
    execution.names.edit().type = facts.type_name;
  }
  if (facts.user == PartStatus::kDamaged) {
    loaded.problem = Status(StatusCode::kCorruption, "its arguments do not match their checksum");
  }
  if (execution.locks().size() > SchedulerEntry::kMaxLocks) {
    loaded.problem = cut_locks(execution);
  }
  read_.procedures.push_back(std::move(loaded));
  return Status();
}

// The header of a procedure comes before its state.
Status RecordReader::read_state(const StoredRow& row, const ProcedureKey& key) {
  LoadedProcedure* const found = last_read(key.id);
  if (found == nullptr || found->has_state) {
    return Status(StatusCode::kCorruption, "there is a state but no header");
  }
  LoadedProcedure& loaded = *found;
  Execution& execution = *loaded.execution;
  PartStatus user = PartStatus::kIntact;
  const Status status = decode_state(row.value, row.sequence, execution, user);
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
    loaded.misfit = unknown_step(execution);
  }
  return Status();
}

// The messages of a procedure come after its state.
void RecordReader::read_message(const StoredRow& row, const ProcedureKey& key) {
  LoadedProcedure* const loaded = last_read(key.id);
  if (loaded == nullptr || !loaded->has_state) {  // its procedure is deleted
    read_.orphans.emplace_back(row.key);
    return;
  }
  go_on_above(key, *loaded->execution);
  auto message = decode_message(row.value);
  const ProcedureState state = loaded->execution->record.state;
  if (is_finished(state) && loaded->state_sequence < row.sequence) {
    // The message was on its way when the procedure ended. A signal to a succeeded procedure counts
    // if the procedure was already to be undone, which is known once its tree is linked.
    const bool may_count = message.ok() && message->kind == InboxMessage::Kind::kSignal &&
                           state == ProcedureState::kSuccess;
    if (!may_count) {
      read_.orphans.emplace_back(row.key);
      return;
    }
    message->late = true;
  }
  if (message.ok() && message->number != key.number) {
    message = Status(StatusCode::kCorruption,
                     "it says that it is number " + std::to_string(message->number));
  }
  if (Status impossible = impossible_number(key); !impossible.ok()) message = impossible;
  if (!message.ok()) {
    loaded->problem = message.status().with_context("message " + std::to_string(key.number));
    loaded->ended_after_message = true;
    return;
  }
  message->sequence = row.sequence;
  if (message->kind == InboxMessage::Kind::kAbort) loaded->ended_after_message = true;
  Inbox& inbox = *loaded->execution->inbox;
  if (message->kind == InboxMessage::Kind::kSignal) inbox.reserve(*message);
  inbox.add(std::make_unique<InboxMessage>(*std::move(message)));
}

// An order stays until the result of its root is acknowledged. Only its number is needed here.
void RecordReader::read_audit(const StoredRow& row, const ProcedureKey& key) {
  if (const auto audit = decode_audit_place(row.value); audit.ok() && audit->root) {
    read_.audit_copies.push_back({std::string(row.key), audit->root});
    return;
  }
  if (ended_) {
    if (*ended_ < row.sequence) read_.orphans.emplace_back(row.key);
    return;
  }
  LoadedProcedure* const loaded = last_read(key.id);
  // Too late: the order came with a message that was on its way when the procedure ended.
  const bool too_late = loaded != nullptr && is_finished(loaded->execution->record.state) &&
                        !is_taken_back(*loaded) && loaded->state_sequence < row.sequence;
  if (loaded == nullptr || too_late) {
    read_.orphans.emplace_back(row.key);
    return;
  }
  loaded->execution->audited = true;
  go_on_above(key, *loaded->execution);
  if (Status impossible = impossible_number(key); !impossible.ok()) loaded->problem = impossible;
}

// Makes the object from its fields and throws it away. So fields that cannot be decoded are found
// now, before anything of its tree runs, and not when its turn comes.
void RecordReader::check_fields(LoadedProcedure& loaded) const {
  if (std::exchange(loaded.checked, true) || !loaded.problem.ok() || !loaded.misfit.ok()) return;
  Execution& execution = *loaded.execution;
  PV2_ASSERT(execution.type != nullptr, "a procedure that this program can run is of a known type");
  Status made = object_of(execution).status();
  // User code that throws now may succeed when its turn comes; otherwise the procedure backs off
  // then, and parks in the end.
  if (made.code() == StatusCode::kCorruption) loaded.misfit = std::move(made);
  execution.has_unknown_fields = pv2::has_unknown_fields(
      execution.type->schema, FieldSelection::kState, execution.record.image);
}

// Called after the last row of an id. There may be no procedure among its rows.
Status RecordReader::finish() {
  LoadedProcedure* const found = last_read(current_);
  if (found == nullptr) return Status();
  LoadedProcedure& last = *found;
  Execution& execution = *last.execution;
  if (!last.has_state) {
    return cannot_read(execution.id, Status(StatusCode::kCorruption,
                                            name_of(execution.id) + " has a header but no state"));
  }
  if (last.root != execution.id || !is_finished(execution.record.state)) {
    check_fields(last);
    return Status();
  }
  if (is_taken_back(last)) {
    execution.record.in_results = is_result_;
    check_fields(last);  // it is to be undone
    return Status();
  }
  read_.ended_roots.push_back(
      {execution.id, execution.nonce(), execution.record.ended_age, bytes_of_rows(execution)});
  if (execution.inbox) {
    for (const auto& message : execution.inbox->messages) {
      read_.orphans.push_back(inbox_key(execution.id, message->number));
    }
  }
  read_.procedures.pop_back();
  return Status();
}

}  // namespace pv2
