// SPDX-License-Identifier: Apache-2.0
//
// StartGate: holds the threads of an executor back between open() and start(). open() makes the
// threads, because it can report that there are none to be had; start() cannot.

#pragma once

#include <pv2/base/mutex.h>

namespace pv2 {

/// Thread-safe.
class StartGate {
 public:
  /// Lets all threads through, now and later.
  void open() PV2_EXCLUDES(gate_mutex_) { set(State::kOpen); }
  /// Makes pass() return false, now and later, unless the gate was opened before.
  void abandon() PV2_EXCLUDES(gate_mutex_) { set(State::kAbandoned); }
  /// Waits for open() or abandon(). False: the thread has to end.
  [[nodiscard]] bool pass() PV2_EXCLUDES(gate_mutex_) {
    MutexLock lock(gate_mutex_);
    while (state_ == State::kShut) decided_.wait(gate_mutex_);
    return state_ == State::kOpen;
  }

 private:
  enum class State { kShut, kOpen, kAbandoned };
  // The first decision stays.
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
