// SPDX-License-Identifier: Apache-2.0
//
// The table of legal state transitions: one row per state, one bit per state that may follow it.

#include "pv2/base/procedure_state.h"

#include <initializer_list>

namespace pv2 {
namespace {

constexpr unsigned bit(ProcedureState state) { return 1U << static_cast<unsigned>(state); }

constexpr unsigned followers(std::initializer_list<ProcedureState> states) {
  unsigned bits = 0;
  for (const ProcedureState state : states) bits |= bit(state);
  return bits;
}

constexpr unsigned allowed_after(ProcedureState from) {
  using S = ProcedureState;
  switch (from) {
    case S::kInitializing:
      return followers({S::kRunnable, S::kWaitingTimeout});
    case S::kRunnable:
      return followers({S::kRunnable, S::kWaiting, S::kWaitingTimeout, S::kSuccess, S::kFailed});
    // The count of unfinished children reaches zero, or the tree fails while children are under
    // way.
    case S::kWaiting:
      return followers({S::kRunnable, S::kFailed});
    case S::kWaitingTimeout:
      return followers({S::kRunnable, S::kWaiting, S::kWaitingTimeout, S::kSuccess, S::kFailed});
    // Each undone step writes FAILED again with a shorter undo list; after the last one the
    // procedure is rolled back. A procedure that failed beyond a point of no return can be ordered
    // to go on.
    case S::kFailed:
      return followers({S::kFailed, S::kRolledBack, S::kRunnable, S::kSuccess});
    // Only as a member of a failed tree: a finished child is undone with its tree.
    case S::kSuccess:
      return followers({S::kFailed, S::kRolledBack});
    case S::kRolledBack:
      return 0;
  }
  return 0;
}

}  // namespace

std::string_view to_string(ProcedureState state) noexcept {
  switch (state) {
    case ProcedureState::kInitializing:
      return "INITIALIZING";
    case ProcedureState::kRunnable:
      return "RUNNABLE";
    case ProcedureState::kWaiting:
      return "WAITING";
    case ProcedureState::kWaitingTimeout:
      return "WAITING_TIMEOUT";
    case ProcedureState::kRolledBack:
      return "ROLLEDBACK";
    case ProcedureState::kSuccess:
      return "SUCCESS";
    case ProcedureState::kFailed:
      return "FAILED";
  }
  return "UNKNOWN_STATE";
}

namespace internal {

constinit const std::array<std::uint8_t, 8> legal_followers = [] {
  std::array<std::uint8_t, 8> table{};
  for (std::size_t state = 0; state < table.size(); ++state) {
    table[state] = static_cast<std::uint8_t>(allowed_after(static_cast<ProcedureState>(state)));
  }
  return table;
}();

}  // namespace internal

}  // namespace pv2
