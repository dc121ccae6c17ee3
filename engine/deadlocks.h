// SPDX-License-Identifier: Apache-2.0
//
// Deadlocks: what the engine does about procedures that wait for each other in a circle. The
// scheduler says when one is suspected, finds them and names them; here it is decided when it
// looks, and the host's policy is applied. Both happen on the pool, so never under a lock of
// whoever closed the circle.

#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "engine_core.h"
#include "publisher.h"
#include "timed_work.h"

namespace pv2 {

/// When a deadlock is looked for. A search goes through everybody who may be in one, so there is
/// one at once, and then at most every half second (kBetweenSearches); later, if searches take so
/// long that they would need more than a twentieth of a thread. A manual clock does not say what a
/// search takes, so with one nothing is put off. Without workers the host's thread searches
/// whenever it has nothing else to do.
///
/// Thread-safe.
class Deadlocks final : public TimedWork {
 public:
  static constexpr Duration kBetweenSearches = std::chrono::milliseconds(500);

  Deadlocks(EngineCore& core, Publisher& publisher);
  /// Called when a search is due at another time than before. Set once, before anything runs.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

  /// A circle is suspected: there will be one search. Not called again before it has ended.
  void expect_search();
  /// Searches now if one is suspected; whether there was one. For an executor without workers.
  bool search_at_idle();

  // TimedWork
  [[nodiscard]] std::optional<SteadyTime> next_due() override;
  std::size_t fire(SteadyTime now) override;

 private:
  void search();

  EngineCore& core_;
  Publisher& publisher_;
  std::function<void()> changed_;
  // When the next search begins, in ticks of the steady clock; kNever: none is expected. Relaxed:
  // no data is published through it.
  static constexpr SteadyTime::rep kNever = SteadyTime::max().time_since_epoch().count();
  std::atomic<SteadyTime::rep> due_{kNever};
  // No search begins before it. Changed by the one search that runs.
  std::atomic<SteadyTime::rep> not_before_;
};

/// Reports every cycle that was found since the last call and, if the policy says so, fails the
/// youngest tree in it that can be undone: its waiting member gets a FAILED record that names the
/// cycle, and an ordinary rollback follows. If all trees in it are being undone already, the
/// youngest is parked. A cycle that has opened meanwhile is left alone.
void resolve_deadlocks(EngineCore& core, Publisher& publisher) PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
