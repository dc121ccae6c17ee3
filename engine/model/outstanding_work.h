// SPDX-License-Identifier: Apache-2.0
//
// OutstandingWork: the offloaded work of one procedure that has not ended in this run. Most
// procedures have none; for them it is a null pointer. A member with outstanding work counts as in
// flight, so no step of its tree is undone while the work runs. Nor does the member leave: it does
// not give back its locks and does not end. Not persisted: a crash ends all work.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "pv2/engine/offload.h"

namespace pv2 {

struct Execution;
struct ProcedureType;
struct StepCommit;

/// One call of offload(). Constant, except for `state` and the members whose comment names a guard.
struct PieceOfWork {
  ProcedureId id;
  const ProcedureType* type = nullptr;
  std::uint32_t step = 0;
  bool undo = false;
  std::uint64_t visit = 0;  ///< The visit of the step, by number.
  std::size_t index = 0;    ///< Its place among the values that the step awaits.
  std::uint32_t epoch = 0;  ///< The epoch of the wait that its value is for.
  SteadyTime since;         ///< When it was offloaded.
  std::unique_ptr<internal::OffloadedWork> work;

  enum class State : std::uint8_t {
    kQueued,
    kRuns,
    kCancelled,  ///< It was told to stop before it began. It never begins.
  };
  std::atomic<State> state{State::kQueued};  ///< Leaves kQueued once: to run, or cancelled.

  /// Under the state mutex.
  bool told_to_stop = false;
  std::list<std::shared_ptr<PieceOfWork>>::iterator place;

  /// Set before the piece is listed among those that run.
  SteadyTime began;
  WallTime began_at{};
  /// Used by the stuck detector: the sign of life after which the piece was reported.
  std::optional<SteadyTime> reported_for;

  [[nodiscard]] SteadyTime last_sign_of_life() const noexcept {
    return work->last_heartbeat().value_or(began);
  }
};

/// Names a piece within its procedure. Pieces of different attempts for the same purpose share it.
struct PlaceOfWork {
  std::uint32_t step = 0;
  bool undo = false;
  std::uint64_t visit = 0;
  std::size_t index = 0;
};

/// Guarded by the state mutex. So is the pointer to it; while the procedure is in flight, only the
/// thread that has it in flight changes the pointer.
struct OutstandingWork {
  /// A step that offloads more fails. 1024: this ends a loop that offloads without waiting, and
  /// telling all pieces to stop holds the state mutex for some microseconds only.
  static constexpr std::size_t kPiecesMax = 1024;

  std::list<std::shared_ptr<PieceOfWork>> pieces;  ///< Oldest first.
  /// Set: the step asked for work of which an earlier copy still runs. The wait with this epoch is
  /// woken when a piece ends.
  std::optional<std::uint32_t> put_off_epoch;
  /// A record after which the procedure would leave. It goes to the store when the last piece has
  /// ended.
  std::unique_ptr<StepCommit> held_back;
  /// In a head whose domain an operator's order ends: the order's record. It is durable, and is
  /// published when no member of the domain has a piece outstanding.
  std::unique_ptr<StepCommit> last_order;
  std::size_t last_order_awaits = 0;  ///< How many members still have one.
  /// In such a member: the head with the `last_order`.
  Execution* ended_with = nullptr;
  bool ends = false;  ///< An order that ends it is on the way or waits. It makes no more records.

  OutstandingWork();
  ~OutstandingWork();
  OutstandingWork(const OutstandingWork&) = delete;
  OutstandingWork& operator=(const OutstandingWork&) = delete;

  [[nodiscard]] bool has(const PlaceOfWork& place) const noexcept;
  /// Whether the end of a piece will wake the wait with this epoch.
  [[nodiscard]] bool wakes(std::uint32_t epoch) const noexcept;
  /// Marks pieces to be stopped: those of `visit`, or all. Appends them to `told`; the caller tells
  /// them without the mutex, because that calls user code.
  void stop(std::vector<std::shared_ptr<PieceOfWork>>& told, const PlaceOfWork* visit = nullptr);
};

}  // namespace pv2
