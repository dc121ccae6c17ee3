// SPDX-License-Identifier: Apache-2.0
//
// Phase: where an execution is, in this run, and who may touch it there. Not persisted: recovery
// decides it from the records.

#pragma once

#include <cstdint>

namespace pv2 {

enum class Phase : std::uint8_t {
  kInserting,  ///< Its first record is on the way.
  kQueued,     ///< In the scheduler, or polled and about to be taken.
  kInFlight,   ///< A worker has taken it or runs its step, or a record of it is on the way.
  kWaiting,    ///< For children, a timer or an awaited value.
  kIdle,      ///< Nothing will happen to it by itself: finished, parked, quarantined, or its domain
              ///< failed.
  kDropping,  ///< A worker had polled it when its domain failed; it becomes kIdle when that worker
              ///< looks.
};

/// The table of moves:
///
///     from       | to
///     -----------|------------------------------------------------------------------------
///     kInserting | kQueued, kWaiting (a start that is put off), kIdle (a child; a failed store)
///     kQueued    | kInFlight, kIdle (stopped), kDropping (stopped, but polled), kWaiting (an
///                | accepted abort comes before its point of no return)
///     kInFlight  | kQueued, kWaiting, kIdle, by the record that was published or never begun
///     kWaiting   | kQueued (woken), kInFlight (a record without a run), kIdle (stopped)
///     kIdle      | kQueued (its turn, or an operator), kWaiting, kInFlight (a record without a
///     run) kDropping  | kIdle
[[nodiscard]] constexpr bool is_legal_move(Phase from, Phase to) noexcept {
  switch (from) {
    case Phase::kInserting:
      return to == Phase::kQueued || to == Phase::kWaiting || to == Phase::kIdle;
    case Phase::kQueued:
      return to != Phase::kInserting;
    case Phase::kInFlight:
    case Phase::kWaiting:
    case Phase::kIdle:
      return to != Phase::kInserting && to != Phase::kDropping;
    case Phase::kDropping:
      return to == Phase::kIdle;
  }
  return false;
}

}  // namespace pv2
