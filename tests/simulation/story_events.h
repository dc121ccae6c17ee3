// SPDX-License-Identifier: Apache-2.0
//
// StoryEvents: conditions in the memory of a simulated host, which steps await. Each life has
// events of its own, and those whose condition still holds are set anew. Whoever waited when an
// event was set goes on, also if it is reset before he runs; nobody else does.

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
  /// Whoever waits goes on; who comes later too, until reset().
  void set(std::size_t which);
  void reset(std::size_t which);

  /// A run of a step asks for an event: whether it may go on.
  bool await(StepContext& ctx, std::size_t which);
  /// What a procedure awaited is over: a retry, another step, or an operator's order.
  void forget(std::uint64_t id);
  /// An order reached its tree: whether what it awaited was kept depends on whether that had
  /// failed.
  void may_ask_anew(std::uint64_t id);

  /// Events that somebody waits for, and one of them is set, for a moment only.
  [[nodiscard]] std::size_t due() const;
  void pulse_due(std::size_t which);

 private:
  struct Waiter {
    std::size_t which = 0;
    bool may_go_on = false;
    bool is_known = true;  // false: it may have been stopped and have to ask anew
  };

  Findings& findings_;
  std::array<Event, kCount> events_;
  std::array<bool, kCount> holds_{};                                 // in the world, over all lives
  std::map<std::pair<std::uint64_t, std::string>, Waiter> waiters_;  // id and effect key
};

}  // namespace pv2::testing
