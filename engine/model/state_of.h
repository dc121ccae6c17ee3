// SPDX-License-Identifier: Apache-2.0
//
// StateOf: a state that changes only along its table of legal moves. The table is a function
// is_legal_move(from, to), declared with the enumeration; move_to() asserts it. A move to the same
// state is always legal.

#pragma once

#include <pv2/base/assert.h>

namespace pv2 {

/// Converts to the enumeration. Guarded like the object that contains it.
template <class State>
class StateOf {
 public:
  explicit constexpr StateOf(State first) noexcept : state_(first) {}
  StateOf(const StateOf&) = delete;
  StateOf& operator=(const StateOf&) = delete;

  operator State() const noexcept { return state_; }
  void move_to(State next) noexcept {
    PV2_ASSERT(state_ == next || is_legal_move(state_, next), "a state moves along its table");
    state_ = next;
  }
  /// For tests of the state audit: sets the state without a look at the table.
  void corrupt(State state) noexcept { state_ = state; }

 private:
  State state_;
};

}  // namespace pv2
