// SPDX-License-Identifier: Apache-2.0
//
// The next record of a procedure repeats the fields of this one. So every record of a step leaves
// room in its batch for what the next record may need in addition: a failure can always be
// recorded.

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

// What a later record may need in addition to the one before it: two errors (that of its failure,
// and that with which it is parked or its undo is retried); the members that were interrupted when
// its tree failed, two numbers per range; an undo entry, a history entry, flags and times; and the
// audit entry of an order with its copy and the row that points to it. Each string includes its
// framing. All numbers of a row together have less than 256 bytes.
constexpr std::size_t kErrorField = limits::kErrorBytes + sizeof("...") + 16;
constexpr std::size_t kNumbers = 256;
constexpr std::size_t kAuditRow = limits::kWhoBytes + limits::kWhyBytes + kNumbers;
constexpr std::size_t kInterrupted = InterruptedMembers::kRangesMax * 2 * 10 + 4;
static_assert(limits::kLaterRecordBytes >=
                  2 * kErrorField + kInterrupted + kNumbers + 2 * kAuditRow + kAuditPointerBytes,
              "the record of an order fits behind every record of a step");
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
  if (outcome.ok()) return *std::move(outcome);
  // A forward step that throws is a defect and fails for good. An undo has to end, so it is
  // retried.
  return {.kind = frame_.undo ? Outcome::Kind::kRetry : Outcome::Kind::kFail,
          .error = outcome.status()};
}

// OK if the batch fits the store and leaves the room for the next record; else the error, with the
// sizes.
Status StepRun::why_too_large() const {
  StoreLimits limits = frame_.core.store_limits;
  limits.batch_bytes -= std::min(limits.batch_bytes / 4, limits::kLaterRecordBytes);
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
