// SPDX-License-Identifier: Apache-2.0
//
// The seven states: their numbers, names, and every one of the 49 transitions.

#include "pv2/base/procedure_state.h"

#include <algorithm>
#include <string>

#include "support/catch.h"

namespace pv2::testing::procedure_state_test {

namespace {

constexpr ProcedureState kAll[] = {
    ProcedureState::kInitializing,   ProcedureState::kRunnable,   ProcedureState::kWaiting,
    ProcedureState::kWaitingTimeout, ProcedureState::kRolledBack, ProcedureState::kSuccess,
    ProcedureState::kFailed,
};

}  // namespace

TEST_CASE("states keep their numbers and names, which are persisted and printed") {
  const char* names[] = {"INITIALIZING", "RUNNABLE", "WAITING", "WAITING_TIMEOUT",
                         "ROLLEDBACK",   "SUCCESS",  "FAILED"};
  int number = 0;
  for (const ProcedureState state : kAll) {
    CHECK(to_string(state) == names[number]);
    CHECK(static_cast<int>(state) == ++number);
  }
  CHECK(to_string(static_cast<ProcedureState>(0)) == "UNKNOWN_STATE");
}

TEST_CASE("of the 49 transitions exactly the legal ones are allowed") {
  // Rows: from; columns: to, both in the order of the numbers.
  //
  //     I R W T B S F   (Initializing, Runnable, Waiting, waiTingTimeout, rolledBack, Success,
  //                     Failed)
  const std::string table[] = {
      ". R . T . . .",  // Initializing: becomes durable
      ". R W T . S F",  // Runnable: whatever a step may answer
      ". R . . . . F",  // Waiting: the last child finished, or the tree fails
      ". R W T . S F",  // WaitingTimeout: woken, or the deadline passed
      ". . . . . . .",  // RolledBack: final
      ". . . . B . F",  // Success: a finished child is undone with its tree
      ". R . . B S F",  // Failed: one undone step after the other, then the end; or repaired
  };
  for (const ProcedureState from : kAll) {
    for (const ProcedureState to : kAll) {
      CAPTURE(std::string(to_string(from)), std::string(to_string(to)));
      const std::size_t row = static_cast<std::size_t>(from) - 1;
      const std::size_t column = 2 * (static_cast<std::size_t>(to) - 1);
      CHECK(is_legal_transition(from, to) == (table[row][column] != '.'));
    }
  }
}

TEST_CASE("nothing goes from or to a state that does not exist") {
  for (const ProcedureState state : kAll) {
    CHECK_FALSE(is_legal_transition(static_cast<ProcedureState>(0), state));
    CHECK_FALSE(is_legal_transition(state, static_cast<ProcedureState>(0)));
    CHECK_FALSE(is_legal_transition(static_cast<ProcedureState>(8), state));
    CHECK_FALSE(is_legal_transition(state, static_cast<ProcedureState>(8)));
  }
}

TEST_CASE("only success and rolled back are the end of a root") {
  for (const ProcedureState state : kAll) {
    const bool final = state == ProcedureState::kSuccess || state == ProcedureState::kRolledBack;
    CHECK(is_finished(state) == final);
  }
}

TEST_CASE("every state can still reach an end") {
  for (const ProcedureState start : kAll) {
    bool reached[8] = {};
    reached[static_cast<std::size_t>(start)] = true;
    for (int round = 0; round < 7; ++round) {
      for (const ProcedureState from : kAll) {
        for (const ProcedureState to : kAll) {
          if (reached[static_cast<std::size_t>(from)] && is_legal_transition(from, to)) {
            reached[static_cast<std::size_t>(to)] = true;
          }
        }
      }
    }
    CHECK(std::any_of(std::begin(kAll), std::end(kAll), [&](ProcedureState state) {
      return is_finished(state) && reached[static_cast<std::size_t>(state)];
    }));
  }
}

}  // namespace pv2::testing::procedure_state_test
