// SPDX-License-Identifier: Apache-2.0
//
// HostThread: which thread is in run_until_idle() of an executor without workers. Only one thread
// at a time; a step that it runs may enter again. A stop never ends the executor under that thread:
// the thread ends the executor when it leaves.

#pragma once

#include <pv2/base/mutex.h>

#include <atomic>
#include <thread>

namespace pv2 {

/// Thread-safe.
class HostThread {
 public:
  enum class Entry {
    kFirst,     ///< leave() has to follow.
    kAgain,     ///< This thread is inside already.
    kOccupied,  ///< Another thread is inside.
    kTooLate,   ///< The executor is stopped.
  };
  [[nodiscard]] Entry enter() PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const std::thread::id me = std::this_thread::get_id();
    if (inside_ == me) return Entry::kAgain;
    if (inside_ != std::thread::id()) return Entry::kOccupied;
    if (is_stopping()) return Entry::kTooLate;
    inside_ = me;
    return Entry::kFirst;
  }
  /// True: stop() was called since enter(), and the caller ends the executor.
  [[nodiscard]] bool leave() PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    inside_ = std::thread::id();
    return is_stopping();
  }
  /// Called once. True: no thread is inside, and the caller ends the executor. False: the thread
  /// that is inside ends the executor after its leave().
  [[nodiscard]] bool stop() PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    stopping_.store(true, std::memory_order_relaxed);
    return inside_ == std::thread::id();
  }
  /// Whether the thread inside should leave. A hint: it may be late.
  [[nodiscard]] bool is_stopping() const noexcept {
    return stopping_.load(std::memory_order_relaxed);
  }

 private:
  Mutex mutex_;
  std::thread::id inside_ PV2_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
};

}  // namespace pv2
