// SPDX-License-Identifier: Apache-2.0
//
// The later records of a procedure repeat its fields. So a record that changes them leaves
// limits::kLaterRecordBytes of its batch free. Then every later record fits, because besides the
// fields it has at most what this table says:
//
//     record                                      errors  ranges  numbers  rows
//     a step waits, is retried, fails or parks    1       -       yes      -
//     who was interrupted when a tree failed      1       yes     yes      -
//     an undo: over, waits, is retried, parks     2       yes     yes      -
//     end of a rollback                           1       yes     yes      date of the result
//     any of these by order of an operator        2       yes     yes      its audit
//
// Of two errors one is that with which the tree failed. A child's first record is part of a record
// of its parent, which leaves the same room. A record that only repeats the fields, and that of an
// undo that makes them smaller, is checked all the same, because it may have rows of the host; it
// has to leave room for an order.

#include "steps/step_run.h"

#include <fmt/format.h>
#include <pv2/store/procedure_store.h>

#include <algorithm>
#include <utility>

#include "model/guard.h"
#include "pv2/engine/limits.h"
#include "pv2/engine/procedure_registry.h"
#include "records/audit_row.h"
#include "records/object_codec.h"
#include "records/procedure_rows.h"
#include "records/row_keys.h"
#include "steps/offloads.h"
#include "steps/row_bindings.h"

namespace pv2 {
namespace {

// Each string includes its framing.
constexpr std::size_t kErrorField = limits::kErrorBytes + sizeof("...") + 16;
// Of the members that were interrupted: two numbers per range.
constexpr std::size_t kRanges = InterruptedMembers::kRangesMax * 2 * 10 + 4;
// By how much all numbers of a row together may grow: eight more entries of the history (20 bytes
// each), an entry to undo, flags, codes, a deadline. And the row with the date of a result.
constexpr std::size_t kNumbers = 400;
constexpr std::size_t kKeyOfAudit = 32;
constexpr std::size_t kAuditRow = limits::kWhoBytes + limits::kWhyBytes + kKeyOfAudit + 128;
// The audit entry of an order, its copy, and the row that points to it.
constexpr std::size_t kOrder = 2 * kAuditRow + kKeyOfAudit + kAuditPointerBytes;
static_assert(limits::kLaterRecordBytes >= 2 * kErrorField + kRanges + kNumbers + kOrder,
              "every later record, and an order about it, fits behind every record of a step");
// An abort, or an order that is carried out as an abort, is a record of its own.
static_assert(limits::kBatchBytesMin >= 3 * kAuditRow + kNumbers,
              "an abort with its audit entry and the copy fits every store");
static_assert(limits::kBatchBytesMin >= 4 * limits::kLaterRecordBytes,
              "every store leaves room for a record beside what is kept free");
static_assert(limits::kBatchOperationsMin >= 5,
              "a lost root is a header, a state, three audit rows");

}  // namespace

StepRun::StepRun(EngineCore& core, Execution& execution, StepCommit& commit, Random& random,
                 std::string& scratch, WallTime now, WakeTarget& wake_target)
    : frame_(core, execution, commit, random, scratch, now), wake_target_(wake_target) {
  commit.execution = &execution;
  commit.kind = frame_.undo ? StepCommit::Kind::kUndo : StepCommit::Kind::kStep;
  commit.next.begin(execution.record, frame_.now);
  commit.next.undo_is_unfinished = frame_.undo;
  commit.next.unsure = frame_.unsure;
  commit.next.holds_locks = true;  // the scheduler hands out only procedures that hold their locks
}

Status StepRun::run() {
  if (Status made = make_object(); !made.ok()) {
    if (made.code() == StatusCode::kCorruption) return made;
    pause_.back_off_without_object(made);
    record_.write();
    return Status();
  }
  frame_.execution.started = true;
  if (frame_.undo) frame_.execution.edit_turn().is_ahead = false;
  decision_.decide(call_user_code());
  if (!frame_.commit.needs_record) return Status();
  record_.write();
  if (Status too_large = why_too_large(); !too_large.ok()) {
    record_.fail_or_park(std::move(too_large));
    record_.write();
    PV2_ASSERT(frame_.core.store_limits.allow(frame_.commit.batch),
               "the record of a failure fits into one batch");
  }
  return Status();
}

// Uses the object of the previous run, unless the procedure has waited since.
Status StepRun::make_object() {
  Execution& execution = frame_.execution;
  if (!execution.object) {
    auto object = object_of(execution);
    if (!object.ok()) return object.status();
    execution.object = *std::move(object);
  }
  execution.wait.without_object = 0;
  return Status();
}

Outcome StepRun::call_user_code() {
  Execution& execution = frame_.execution;
  PV2_ASSERT(execution.object != nullptr, "a step runs on an object");
  PV2_ASSERT(frame_.step != 0, "a run has a step");
  StepContext context(*this);
  auto outcome = guarded([&] { return "step " + frame_.name() + " of " + execution.type->name; },
                         [&] {
                           return frame_.undo ? execution.object->rollback(context)
                                              : execution.object->execute(context);
                         });
  return outcome.ok() ? *std::move(outcome) : decision_.as_if_thrown(outcome.status());
}

// How much of its batch the record leaves free for later ones. If its fields are no larger than
// before, an earlier record has left the room that it takes.
std::size_t StepRun::room_to_leave() const {
  const Record& last = frame_.execution.record;
  const Transition& next = frame_.commit.next;
  const bool waits = next.undo == UndoChange::kKeep && !next.ends_waits;
  const bool is_undo_no_larger = frame_.undo && next.image.size() <= last.image.size();
  const bool room_is_left_already =
      !next.new_image || is_undo_no_larger || (waits && next.image.view() == last.image.view());
  if (room_is_left_already) return kOrder;
  if (!may_carry_failure(last, next)) return limits::kLaterRecordBytes;
  // The record of an undo has an error already that later records repeat, or replace.
  const std::size_t error = failure_after(last, next).error.message().size();
  return limits::kLaterRecordBytes - std::min(error, limits::kErrorBytes);
}

// OK if the batch fits the store and leaves the room for later records; else the error, with the
// sizes.
Status StepRun::why_too_large() const {
  StoreLimits limits = frame_.core.store_limits;
  limits.batch_bytes -= std::min(limits.batch_bytes / 4, room_to_leave());
  const RowBatch& batch = frame_.commit.batch;
  if (limits.allow(batch)) return Status();
  return {
      StatusCode::kInvalidArgument,
      fmt::format("step {} of procedure {} writes {} rows, {} bytes; {} takes {} rows, {} bytes "
                  "in one batch",
                  frame_.name(), frame_.execution.id.value, batch.operations(), batch.bytes(),
                  frame_.core.store.name(), limits.batch_operations, limits.batch_bytes)};
}

}  // namespace pv2
