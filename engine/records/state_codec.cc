// SPDX-License-Identifier: Apache-2.0
//
// encode_state() writes each protobuf message straight into its frame. decode_state() offers each
// field to the readers of progress, lists and failure; a number that none of them knows was written
// by a newer program and is skipped.

#include "records/state_codec.h"

#include <pv2/base/assert.h>
#include <pv2/base/stored_time.h>
#include <pv2/base/wire.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "records/failure_codec.h"
#include "records/named_values.h"
#include "records/row_parts.h"
#include "records/row_writer.h"
#include "records/state_fields.h"
#include "records/state_lists.h"

namespace pv2 {
namespace {

// Which members were in the middle of a step, according to the record `next`. nullptr: the record
// does not say, or does not need to any more because the domain is undone.
const InterruptedMembers* interrupted_of(const Execution& execution, const Transition& next) {
  if (ends_undo(execution, next)) return nullptr;
  return next.interrupted() != nullptr ? next.interrupted() : execution.record.interrupted();
}

std::uint64_t flags_of(const Transition& next, bool knows_interrupted) {
  using namespace state_flag;
  return (next.holds_locks ? kHoldsLocks : 0) | (next.no_return ? kNoReturn : 0) |
         (next.parked ? kParked : 0) | (next.awaits ? kAwaits : 0) |
         (next.bypassed ? kBypassed : 0) | (next.sent_back ? kSentBack : 0) |
         (next.reported ? kReported : 0) | (next.unsure ? kUnsure : 0) |
         (knows_interrupted ? kKnowsInterrupted : 0) | (next.audited ? kAudited : 0);
}

void take_flags(std::uint64_t flags, Record& record) {
  using namespace state_flag;
  record.holds_locks = (flags & kHoldsLocks) != 0;
  record.no_return = (flags & kNoReturn) != 0;
  record.parked = (flags & kParked) != 0;
  record.awaits = (flags & kAwaits) != 0;
  record.bypassed = (flags & kBypassed) != 0;
  record.sent_back = (flags & kSentBack) != 0;
  record.reported = (flags & kReported) != 0;
  record.unsure = (flags & kUnsure) != 0;
}

// Only these states are ever stored.
constexpr auto kFirstState = static_cast<std::uint64_t>(ProcedureState::kRunnable);
constexpr auto kLastState = static_cast<std::uint64_t>(ProcedureState::kFailed);

bool may_be_parked(ProcedureState state) {
  return state == ProcedureState::kRunnable || state == ProcedureState::kFailed;
}

// Asserts what decode_state() checks.
void assert_makes_sense(const Transition& next) {
  const auto state = static_cast<std::uint64_t>(next.state);
  PV2_ASSERT(state >= kFirstState && state <= kLastState,
             "the state of a record is one that is stored");
  PV2_ASSERT(!next.parked || may_be_parked(next.state),
             "a parked procedure neither waits nor has ended");
  PV2_ASSERT(!next.reported || next.state == ProcedureState::kRolledBack,
             "a reported failure was undone");
  PV2_ASSERT(!next.deadline || next.patience >= Duration::zero(),
             "the patience of a wait is not negative");
}

// The fields of a row that can be used only after all of them were read.
struct StateFields {
  std::uint64_t state = 0;
  std::uint64_t flags = 0;
  StoredLists lists;
  StoredFailure failure;

  explicit StateFields(CommitSequence own) : failure(own) {}
};

// Takes the reader's current field if it belongs to the progress, and returns whether it does.
bool read_progress(WireReader& reader, StateFields& fields, Record& record) {
  switch (reader.number()) {
    case state_field::kState:
      fields.state = reader.varint();
      return true;
    case state_field::kStep:
      record.step = static_cast<std::uint32_t>(reader.varint());
      return true;
    case state_field::kAttempt:
      record.attempt = static_cast<std::uint32_t>(reader.varint());
      return true;
    case state_field::kVisits:
      record.visits = reader.varint();
      return true;
    case state_field::kFlags:
      fields.flags = reader.varint();
      return true;
    case state_field::kDeadline:
      record.deadline = wall_time(reader.sint());
      return true;
    case state_field::kPatience:
      record.patience = Duration(std::max<std::int64_t>(reader.sint(), 0));
      return true;
    case state_field::kUpdated:
      record.updated = wall_time(reader.sint());
      return true;
    case state_field::kResult:
      record.set_result(reader.bytes());
      return true;
    case state_field::kEndedAge:
      record.ended_age = Duration(std::max<std::int64_t>(reader.sint(), 0));
      return true;
    default:
      return false;
  }
}

Status read_fields(std::string_view bytes, StateFields& fields, Record& record) {
  NamedValues named;
  WireReader reader(bytes);
  while (reader.next()) {
    if (read_progress(reader, fields, record)) continue;
    if (fields.lists.read(reader)) continue;
    fields.failure.read(reader, named);
  }
  if (!reader.ok()) return reader.status().with_context("state");
  return named.status("state");
}

Status take_lists(const StateFields& fields, CommitSequence own, Record& record) {
  Status status = decode_undo_list(fields.lists.undo, own, record.undo);
  if (status.ok()) status = decode_history(fields.lists.history, record.updated, record.history);
  if (!status.ok() || (fields.flags & state_flag::kKnowsInterrupted) == 0) return status;
  auto interrupted = std::make_unique<InterruptedMembers>();
  const Status decoded = decode_interrupted(fields.lists.interrupted, *interrupted);
  record.set_interrupted(std::move(interrupted));
  return decoded;
}

Status take_failure(const StateFields& fields, Record& record) {
  auto failure = fields.failure.decode();
  if (!failure.ok()) return failure.status();
  record.set_failure(*std::move(failure));
  return Status();
}

Status take_state(const StateFields& fields, Record& record) {
  if (fields.state < kFirstState || fields.state > kLastState) {
    return Status(StatusCode::kCorruption,
                  "state number " + std::to_string(fields.state) + " is none that is ever stored");
  }
  record.state = static_cast<ProcedureState>(fields.state);
  take_flags(fields.flags, record);
  if (record.parked && !may_be_parked(record.state)) {
    return Status(StatusCode::kCorruption,
                  "state says that it is parked, and that it waits or has ended");
  }
  if (record.reported && record.state != ProcedureState::kRolledBack) {
    return Status(StatusCode::kCorruption,
                  "state says that its failure was reported, and not that it is undone");
  }
  return Status();
}

}  // namespace

bool ends_undo(const Execution& execution, const Transition& next) noexcept {
  return next.state == ProcedureState::kRolledBack && (next.reported || execution.is_root());
}

bool ends_root(const Execution& execution, const Transition& next) noexcept {
  const bool ends = execution.is_root() && is_finished(next.state);
  PV2_ASSERT(!ends || next.ended_age != Progress::kNotDated, "the end of a root is dated");
  return ends;
}

namespace {

std::size_t failure_bytes(const Record& last, const Transition& next) {
  if (!may_carry_failure(last, next)) return 0;
  const FailureAfter failure = failure_after(last, next);
  return failure.error.message().size() + failure.parked.message().size() +
         failure.undo.message().size();
}

}  // namespace

std::size_t state_bytes_max(const Execution& execution, const Transition& next) {
  const InterruptedMembers* const interrupted = interrupted_of(execution, next);
  // 22 numbers are enough for nineteen fields and a message of two in one of them. An entry of the
  // history has three numbers; a step to undo and a range have two.
  const std::size_t numbers_max = 22 + 3 * (History::kCapacity + 1) +
                                  2 * (execution.record.undo.size() + 1) +
                                  2 * (interrupted != nullptr ? interrupted->ranges().size() : 0);
  return 2 * kFrameHeaderBytes + numbers_max * RowWriter::kFieldMax +
         failure_bytes(execution.record, next) + next.result().size() +
         (next.new_image ? next.image.size() : execution.record.image.size());
}

void encode_state(const Execution& execution, const Transition& next, std::uint32_t ran_step,
                  std::string& out) {
  assert_makes_sense(next);
  const std::string_view image = next.new_image ? next.image.view() : execution.record.image.view();
  const InterruptedMembers* const interrupted = interrupted_of(execution, next);
  RowWriter row(state_bytes_max(execution, next));
  char* const frame = row.open_frame();
  row.varint(state_field::kState, static_cast<std::uint64_t>(next.state));
  row.varint(state_field::kStep, next.step);
  row.varint(state_field::kAttempt, next.attempt);
  row.varint(state_field::kVisits, next.visits);
  row.varint(state_field::kFlags, flags_of(next, interrupted != nullptr));
  if (next.deadline) {
    row.sint(state_field::kDeadline, micros(*next.deadline));
    row.sint(state_field::kPatience, next.patience.count());
  }
  row.sint(state_field::kUpdated, micros(next.updated));
  encode_history(row, execution.record.history, next);
  encode_undo_list(row, execution.record, next, ran_step);
  encode_interrupted(row, interrupted);
  if (may_carry_failure(execution.record, next)) {
    encode_failure(row, failure_after(execution.record, next));
  }
  if (!next.result().empty()) row.bytes(state_field::kResult, next.result());
  if (ends_root(execution, next)) row.sint(state_field::kEndedAge, next.ended_age.count());
  row.close_frame(frame);
  char* const user = row.open_frame();
  row.put_raw(image);
  row.close_frame(user);
  row.append_to(out);
}

Status decode_state(std::string_view row, CommitSequence sequence, Execution& execution,
                    PartStatus& user) {
  Record& record = execution.record;
  const auto engine = split_row(row, record.image, user);
  if (!engine.ok()) return engine.status();
  StateFields fields(sequence);
  Status status = read_fields(*engine, fields, record);
  if (status.ok()) status = take_lists(fields, sequence, record);
  if (status.ok()) status = take_failure(fields, record);
  if (status.ok()) status = take_state(fields, record);
  if (status.ok() && (fields.flags & state_flag::kAudited) != 0) execution.audited = true;
  return status;
}

}  // namespace pv2
