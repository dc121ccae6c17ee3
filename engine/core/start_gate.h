// SPDX-License-Identifier: Apache-2.0
//
// StartGate: holds the threads of an executor back between open(), which makes them because it can
// say that there are none, and start(), which cannot.

#pragma once

#include <pv2/base/mutex.h>

namespace pv2 {

/// Thread-safe.
class StartGate {
 public:
  /// Lets everybody through, now and later.
  void open() PV2_EXCLUDES(gate_mutex_) { set(State::kOpen); }
  /// Sends everybody home who was not let through.
  void abandon() PV2_EXCLUDES(gate_mutex_) { set(State::kAbandoned); }
  /// Waits for one of the two; false: go home.
  [[nodiscard]] bool pass() PV2_EXCLUDES(gate_mutex_) {
    MutexLock lock(gate_mutex_);
    while (state_ == State::kShut) decided_.wait(gate_mutex_);
    return state_ == State::kOpen;
  }

 private:
  enum class State { kShut, kOpen, kAbandoned };
  // What was decided first stays.
  void set(State state) PV2_EXCLUDES(gate_mutex_) {
    {
      MutexLock lock(gate_mutex_);
      if (state_ == State::kShut) state_ = state;
    }
    decided_.notify_all();
  }

  Mutex gate_mutex_;
  CondVar decided_;
  State state_ PV2_GUARDED_BY(gate_mutex_) = State::kShut;
};

}  // namespace pv2
