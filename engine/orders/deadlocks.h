// SPDX-License-Identifier: Apache-2.0
//
// Deadlocks: what the engine does about procedures that wait for each other in a cycle. The
// scheduler suspects cycles, finds them and names their members. This part decides when the
// scheduler searches, and applies the host's policy to the cycles. Both run on the pool, so the
// lock that the thread held when it closed the cycle is not held.

#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "core/engine_core.h"
#include "core/publisher.h"
#include "core/timed_work.h"

namespace pv2 {

/// When the engine searches for deadlocks. A search visits every procedure that may be in one. So
/// the first search begins at once, and later ones at most every half second (kBetweenSearches), or
/// less often if searches would otherwise take more than a twentieth of a thread. With a manual
/// clock, which does not show how long a search takes, no search is delayed. Without workers the
/// host's thread searches whenever it has nothing else to do.
///
/// Thread-safe.
class Deadlocks final : public TimedWork {
 public:
  static constexpr Duration kBetweenSearches = std::chrono::milliseconds(500);

  Deadlocks(EngineCore& core, Publisher& publisher);
  /// Sets a function that is called when the next search becomes due at another time. Called once,
  /// before any thread runs.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

  /// A cycle is suspected, so one search follows. Not called again before that search has ended.
  void expect_search();
  /// Searches now if a cycle is suspected, and returns whether it searched. For an executor
  /// without workers.
  bool search_at_idle();

  // TimedWork
  [[nodiscard]] std::optional<SteadyTime> next_due() override;
  std::size_t fire(SteadyTime now) override;

 private:
  void search();

  EngineCore& core_;
  Publisher& publisher_;
  std::function<void()> changed_;
  // When the next search begins, in ticks of the steady clock; kNever: no search is expected.
  // Relaxed: no data is published through it.
  static constexpr SteadyTime::rep kNever = SteadyTime::max().time_since_epoch().count();
  std::atomic<SteadyTime::rep> due_{kNever};
  // No search begins earlier. Written only by the search that runs.
  std::atomic<SteadyTime::rep> not_before_;
};

/// Logs every cycle that was found since the last call. If the policy says so, fails the youngest
/// tree of the cycle that can be undone: its waiting member gets a FAILED record that names the
/// cycle, and an ordinary rollback follows. If no tree can be undone, the youngest of those that
/// are being undone is parked, or else the youngest of all. A cycle that has opened by now is left
/// alone.
void resolve_deadlocks(EngineCore& core, Publisher& publisher) PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
