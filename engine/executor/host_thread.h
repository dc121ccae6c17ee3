// SPDX-License-Identifier: Apache-2.0
//
// HostThread: who is in run_until_idle() of an executor without workers. One thread at a time; a
// step that it runs may enter again. A stop never ends the executor under that thread: who is
// inside ends it on the way out.

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
  /// True: somebody has called stop() meanwhile, and the caller ends the executor.
  [[nodiscard]] bool leave() PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    inside_ = std::thread::id();
    return is_stopping();
  }
  /// Called once. True: nobody was inside, and the caller ends the executor. False: the thread that
  /// is inside does so, when its leave() says it.
  [[nodiscard]] bool stop() PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    stopping_.store(true, std::memory_order_relaxed);
    return inside_ == std::thread::id();
  }
  /// Whoever is inside is to leave. A hint: it may be late.
  [[nodiscard]] bool is_stopping() const noexcept {
    return stopping_.load(std::memory_order_relaxed);
  }

 private:
  Mutex mutex_;
  std::thread::id inside_ PV2_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
};

}  // namespace pv2
