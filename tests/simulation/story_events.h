// SPDX-License-Identifier: Apache-2.0
//
// StoryEvents: conditions in the memory of a simulated host, which steps await. Each life has new
// events, and those whose condition still holds are set again. Every run that waited when an event
// was set goes on, even if the event is reset before it runs; no other run goes on.

#pragma once

#include <pv2/engine/event.h>
#include <pv2/engine/step_context.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "pv2/testing/findings.h"

namespace pv2::testing {

/// Owned by one thread.
class StoryEvents {
 public:
  static constexpr std::size_t kCount = 2;

  explicit StoryEvents(Findings& findings) : findings_(findings) {}

  void begin_life();
  /// Every waiting run goes on, and so does every later one until reset().
  void set(std::size_t which);
  void reset(std::size_t which);

  /// Called when a run of a step asks for an event. Whether it may go on.
  bool await(StepContext& ctx, std::size_t which);
  /// The procedure no longer awaits an event: a retry, another step, or an operator's order ended
  /// the wait.
  void forget(std::uint64_t id);
  /// An order reached the procedure's tree. Whether the wait was kept depends on whether the tree
  /// had failed.
  void may_ask_anew(std::uint64_t id);

  /// How many events some run waits for, and setting one of them for a moment.
  [[nodiscard]] std::size_t due() const;
  void pulse_due(std::size_t which);

 private:
  struct Waiter {
    std::size_t which = 0;
    bool may_go_on = false;
    bool is_known = true;  // false: the wait may have been ended, so it may have to ask again
  };

  Findings& findings_;
  std::array<Event, kCount> events_;
  std::array<bool, kCount> holds_{};                                 // in the world, over all lives
  std::map<std::pair<std::uint64_t, std::string>, Waiter> waiters_;  // id and effect key
};

}  // namespace pv2::testing
