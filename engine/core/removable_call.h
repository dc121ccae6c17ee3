// SPDX-License-Identifier: Apache-2.0
//
// RemovableCall: a function of the host that is called from time to time and may be removed at any
// time. When remove() has waited, the function is not running and will not run again.

#pragma once

#include <pv2/base/mutex.h>

#include <type_traits>
#include <utility>

namespace pv2 {

/// Thread-safe. Called by one thread at a time.
class RemovableCall {
 public:
  /// Runs `call` unless it was removed. False: it was removed, before or during the call. `call`
  /// must not throw: it would count as running for ever, and remove() would wait for ever.
  template <class Call>
  bool run(Call&& call) PV2_EXCLUDES(state_mutex_) {
    static_assert(std::is_nothrow_invocable_v<Call>);
    {
      MutexLock lock(state_mutex_);
      if (removed_) return false;
      running_ = true;
    }
    std::forward<Call>(call)();
    MutexLock lock(state_mutex_);
    running_ = false;
    ended_.notify_all();
    return !removed_;
  }

  /// No call begins after this. With `wait`, none is under way either when this returns; the thread
  /// that makes the call must not wait.
  void remove(bool wait) PV2_EXCLUDES(state_mutex_) {
    MutexLock lock(state_mutex_);
    removed_ = true;
    while (wait && running_) ended_.wait(state_mutex_);
  }

 private:
  Mutex state_mutex_;
  CondVar ended_;
  bool removed_ PV2_GUARDED_BY(state_mutex_) = false;
  bool running_ PV2_GUARDED_BY(state_mutex_) = false;
};

}  // namespace pv2
