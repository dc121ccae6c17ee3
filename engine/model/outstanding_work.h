// SPDX-License-Identifier: Apache-2.0
//
// OutstandingWork: the offloaded work of one procedure that has not ended in this run. Most
// procedures have none and pay a null pointer. A member with outstanding work is in flight for its
// tree, so nothing of the tree is undone beside it, and it does not leave: it gives nothing back
// and does not end. Not persisted: a crash ends all work.

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
#include "pv2/engine/procedure_registry.h"

namespace pv2 {

struct Execution;
struct StepCommit;

/// One call of offload(). Constant, apart from what says otherwise.
struct PieceOfWork {
  ProcedureId id;
  const ProcedureType* type = nullptr;
  std::uint32_t step = 0;
  bool undo = false;
  std::uint64_t visit = 0;  ///< Of the step, by number.
  std::size_t index = 0;    ///< Among what the step awaits.
  std::uint32_t epoch = 0;  ///< Of the wait that its value is for.
  SteadyTime since;         ///< When it was offloaded.
  std::unique_ptr<internal::OffloadedWork> work;

  enum class State : std::uint8_t {
    kQueued,
    kRuns,
    kCancelled,  ///< It was told to stop before it began, and never begins.
  };
  std::atomic<State> state{State::kQueued};  ///< Left once: by who runs it or by who cancels it.

  /// Under the state mutex.
  bool told_to_stop = false;
  std::list<std::shared_ptr<PieceOfWork>>::iterator place;

  /// Set before it is among those that run.
  SteadyTime began;
  WallTime began_at{};
  /// Of the stuck detector: the sign of life after which it was reported.
  std::optional<SteadyTime> reported_for;

  [[nodiscard]] SteadyTime last_sign_of_life() const noexcept {
    return work->last_heartbeat().value_or(began);
  }
};

/// What tells pieces apart that are for the same thing in different attempts.
struct PlaceOfWork {
  std::uint32_t step = 0;
  bool undo = false;
  std::uint64_t visit = 0;
  std::size_t index = 0;
};

/// The pointer to it changes under the state mutex, while its procedure is not in flight or by who
/// has it in flight; all in it is guarded by that mutex.
struct OutstandingWork {
  /// Beyond it the step fails. 1024: a loop that offloads without waiting ends here, and telling
  /// all to stop takes some microseconds of the state mutex.
  static constexpr std::size_t kPiecesMax = 1024;

  std::list<std::shared_ptr<PieceOfWork>> pieces;  ///< Oldest first.
  /// A step that asked for work whose earlier copy still runs is woken when a piece ends.
  std::optional<std::uint32_t> put_off_epoch;
  /// The record of a run after which the procedure would leave: it goes to the store when the last
  /// piece has ended.
  std::unique_ptr<StepCommit> held_back;
  /// Of the head of what an operator's order ends: durable, and published when nobody of it has a
  /// piece outstanding. So many have.
  std::unique_ptr<StepCommit> last_order;
  std::size_t last_order_awaits = 0;
  /// The head of what is ended so, of one that has a piece outstanding.
  Execution* ended_with = nullptr;
  bool ends =
      false;  ///< An order that ends it is on the way, or waits: it makes no record any more.

  OutstandingWork();
  ~OutstandingWork();
  OutstandingWork(const OutstandingWork&) = delete;
  OutstandingWork& operator=(const OutstandingWork&) = delete;

  [[nodiscard]] bool has(const PlaceOfWork& place) const noexcept;
  /// Tells pieces to stop, all or those of one visit: who shall hear of it goes into `told`, as
  /// that calls user code.
  void stop(std::vector<std::shared_ptr<PieceOfWork>>& told, const PlaceOfWork* visit = nullptr);
};

}  // namespace pv2
