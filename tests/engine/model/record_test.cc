// SPDX-License-Identifier: Apache-2.0
//
// How one record follows another: publishing leaves in memory what a restart reads from the row.

#include "model/record.h"

#include <pv2/base/random.h>

#include <memory>
#include <string>
#include <string_view>

#include "model/execution.h"
#include "records/row_parts.h"
#include "records/state_codec.h"
#include "support/catch.h"

namespace pv2::testing::record_test {
namespace {

Status any_error(Random& random) {
  return random.below(2) == 0 ? Status()
                              : Status(StatusCode::kUnavailable, std::to_string(random.below(100)));
}

// A record that can exist: it keeps the state machine's rules about states and flags.
void begin_with(Random& random, Record& record) {
  constexpr ProcedureState kStates[] = {ProcedureState::kRunnable, ProcedureState::kWaitingTimeout,
                                        ProcedureState::kFailed};
  record.state = kStates[random.below(3)];
  record.step = 1 + static_cast<std::uint32_t>(random.below(3));
  record.attempt = 1 + static_cast<std::uint32_t>(random.below(3));
  record.visits = random.below(10);
  record.no_return = random.below(2) == 0;
  record.unsure = random.below(2) == 0;
  record.sent_back = random.below(2) == 0;
  record.holds_locks = random.below(2) == 0;
  record.updated = WallTime(Duration(1000));
  record.parked = record.state != ProcedureState::kWaitingTimeout && random.below(2) == 0;
  record.image = "before";
  if (random.below(2) == 0) record.undo.push_back({1, CommitSequence{3}});
  if (random.below(2) == 0) record.undo.push_back({2, CommitSequence{4}});
  if (random.below(2) == 0) record.history.add({1, 1, Outcome::Kind::kRetry, WallTime()});
  if (record.state != ProcedureState::kFailed) return;
  auto failure = std::make_unique<Failure>();
  failure->error = Status(StatusCode::kAborted, "first");
  failure->sequence = CommitSequence{5};
  if (record.parked) failure->parked = Status(StatusCode::kInternal, "stuck");
  record.set_failure(std::move(failure));
}

Transition any_record_after(Random& random, const Record& last) {
  Transition next;
  next.begin(last, WallTime(Duration(2000)));
  if (last.state == ProcedureState::kFailed && random.below(2) == 0) {
    next.state = random.below(2) == 0 ? ProcedureState::kFailed : ProcedureState::kRolledBack;
  } else if (random.below(2) == 0) {
    next.state = ProcedureState::kRunnable;
  }
  next.parked = !is_finished(next.state) && next.state != ProcedureState::kWaitingTimeout &&
                random.below(2) == 0;
  next.undo = static_cast<UndoChange>(random.below(4));
  next.undo_is_unfinished = random.below(2) == 0;
  next.set_error(any_error(random));
  if (next.state == ProcedureState::kFailed) next.set_undo_error(any_error(random));
  if (random.below(2) == 0) ++next.visits;
  if (random.below(2) == 0) {
    next.image = std::string_view("after");
    next.new_image = true;
  }
  if (random.below(2) == 0) {
    next.deadline = WallTime(Duration(9000));
    next.patience = Duration(7000);
    next.awaits = random.below(2) == 0;
  }
  if (random.below(2) == 0) next.set_result("result");
  if (random.below(2) == 0) {
    next.history = HistoryEntry{last.step, last.attempt, Outcome::Kind::kRetry, WallTime()};
  }
  return next;
}

std::string words(const Record& record) {
  std::string text;
  const auto add = [&text](const auto&... parts) { ((text += parts, text += '|'), ...); };
  const auto number = [](auto value) { return std::to_string(static_cast<long long>(value)); };
  add(number(record.visits), number(record.step), number(record.attempt), number(record.state));
  add(number(record.no_return), number(record.parked), number(record.bypassed));
  add(number(record.sent_back), number(record.reported), number(record.unsure));
  add(number(record.awaits), number(record.holds_locks), number(record.ended_age.count()));
  add(record.deadline ? number((*record.deadline).time_since_epoch().count()) : "none");
  add(number(record.deadline ? record.patience.count() : 0));
  add(number(record.updated.time_since_epoch().count()));
  add(std::string(record.image.view()), std::string(record.result()));
  for (const UndoEntry& entry : record.undo) add(number(entry.step), number(entry.sequence.value));
  for (std::size_t i = 0; i < record.history.size(); ++i) add(number(record.history.at(i).step));
  if (record.failure() != nullptr) {
    add(record.failure()->error.to_string(), record.failure()->parked.to_string());
    add(record.failure()->undo.to_string(), number(record.failure()->sequence.value));
  }
  return text;
}

TEST_CASE("a transition that begins anew has nothing of the last one but a small image's memory") {
  for (const std::size_t size : {100, 5'000}) {
    Transition next;
    next.image = std::string_view(std::string(size, 'x'));
    const char* const memory = next.image.view().data();
    next.set_error(Status(StatusCode::kAborted, "an error"));
    next.set_undo_error(Status(StatusCode::kAborted, "another one"));
    next.set_retried(Status(StatusCode::kAborted, "a third one"));
    next.set_result("a result");
    next.set_interrupted(std::make_unique<InterruptedMembers>());
    next.new_image = next.requeue = true;

    next.reset();

    CHECK_FALSE(next.has_error());
    CHECK_FALSE(next.is_retried());
    CHECK(next.error().ok());
    CHECK(next.result().empty());
    CHECK(next.interrupted() == nullptr);
    CHECK_FALSE(next.new_image);
    CHECK_FALSE(next.requeue);
    CHECK((next.image.view().data() == memory) == (size == 100));
  }
}

TEST_CASE("a restart reads from a row what publishing its record left in memory") {
  Random random(20261123);
  for (int i = 0; i < 3000; ++i) {
    Execution execution;
    Execution root;
    execution.id = ProcedureId{7};
    execution.edit_place().root = &root;
    begin_with(random, execution.record);
    Transition next = any_record_after(random, execution.record);
    const std::uint32_t ran_step = execution.record.step;
    const CommitSequence sequence{50};
    std::string row;
    encode_state(execution, next, ran_step, row);

    execution.record.assign(next, ran_step, sequence);
    CHECK_FALSE(next.new_image);

    Execution read;
    PartStatus user = PartStatus::kDamaged;
    REQUIRE(decode_state(row, sequence, read, user).ok());
    REQUIRE(words(read.record) == words(execution.record));
  }
}

TEST_CASE("a wait without a record leaves the fields that only a record can change") {
  Record record;
  record.state = ProcedureState::kRunnable;
  record.updated = WallTime(Duration(1));
  record.holds_locks = true;
  record.set_result("kept");
  Transition next;
  next.begin(record, WallTime(Duration(2)));
  next.state = ProcedureState::kWaitingTimeout;
  next.deadline = WallTime(Duration(30));
  next.holds_locks = false;

  record.assign_wait(next);

  CHECK(record.state == ProcedureState::kWaitingTimeout);
  CHECK(*record.deadline == WallTime(Duration(30)));
  CHECK(record.updated == WallTime(Duration(1)));
  CHECK(record.holds_locks);
  CHECK(record.result() == "kept");
}

}  // namespace
}  // namespace pv2::testing::record_test
