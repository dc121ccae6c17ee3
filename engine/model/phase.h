// SPDX-License-Identifier: Apache-2.0
//
// Phase: what an execution does in this run. It decides which thread may touch the execution
// (execution.h). Not persisted: recovery decides it from the records.

#pragma once

#include <cstdint>

namespace pv2 {

enum class Phase : std::uint8_t {
  kInserting,  ///< Its first record is on the way.
  kQueued,     ///< In the scheduler, or polled and about to be taken.
  kInFlight,   ///< A worker has taken it or runs its step, or its record is on the way.
  kWaiting,    ///< For children, a timer or an awaited value.
  kIdle,      ///< It does not go on by itself: it is finished, parked or quarantined, or its domain
              ///< failed.
  kDropping,  ///< A worker had polled it when its domain failed. It becomes kIdle when that worker
              ///< is about to take it.
};

/// The table of moves:
///
///     from       | to
///     -----------|------------------------------------------------------------------------
///     kInserting | kQueued, kWaiting (a delayed start), kIdle (a child; the store failed)
///     kQueued    | kInFlight, kIdle (stopped), kDropping (stopped, but polled), kWaiting (an
///                | abort was accepted before its point of no return)
///     kInFlight  | kQueued, kWaiting, kIdle (its record was published, or it never began)
///     kWaiting   | kQueued (woken), kInFlight (a record without a run), kIdle (stopped)
///     kIdle      | kQueued (its turn, or an operator's order), kWaiting, kInFlight (a record
///                | without a run)
///     kDropping  | kIdle
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
