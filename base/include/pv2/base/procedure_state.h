// SPDX-License-Identifier: Apache-2.0
//
// The seven states of a procedure and the one table of legal moves between them. The numbers are
// persisted. Each record that changes a state, and each change in memory, is held against the
// table: an illegal move is a defect of the engine.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pv2 {

enum class ProcedureState : std::uint8_t {
  kInitializing = 1,    ///< Being submitted; not durable yet.
  kRunnable = 2,        ///< Can take a step, is in one, or waits for a lock or something volatile.
  kWaiting = 3,         ///< Its children have to finish first.
  kWaitingTimeout = 4,  ///< A durable deadline has to pass (a timer, a back-off).
  kRolledBack = 5,      ///< Final: it failed and what it did was undone.
  kSuccess = 6,         ///< Final for a root; a finished child may still be undone with its tree.
  kFailed = 7,          ///< It failed; being undone, or parked. Never final.
};

/// The state's stable name ("WAITING_TIMEOUT").
[[nodiscard]] std::string_view to_string(ProcedureState state) noexcept;

namespace internal {
/// Per state, one bit for each state that may follow it. The table is in procedure_state.cc.
extern const std::array<std::uint8_t, 8> legal_followers;
}  // namespace internal

/// Whether a record may go from `from` to `to`.
[[nodiscard]] inline bool is_legal_transition(ProcedureState from, ProcedureState to) noexcept {
  const auto row = static_cast<std::size_t>(from);
  const auto bit = static_cast<std::size_t>(to);
  return row < internal::legal_followers.size() && bit < internal::legal_followers.size() &&
         (internal::legal_followers[row] >> bit & 1) != 0;
}

/// Whether a root in this state has ended for good.
[[nodiscard]] constexpr bool is_finished(ProcedureState state) noexcept {
  return state == ProcedureState::kSuccess || state == ProcedureState::kRolledBack;
}

}  // namespace pv2
