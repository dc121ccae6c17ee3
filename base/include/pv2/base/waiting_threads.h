// SPDX-License-Identifier: Apache-2.0
//
// WaitingThreads: lets a thread that takes one mutex again and again, for short sections, give way
// to those that wait for it. A thread that sleeps until the mutex is free needs longer to wake up
// than the other one needs to take it back, so without this it would wait for all sections.

#pragma once

#include <atomic>
#include <cstddef>

#include "pv2/base/mutex.h"

namespace pv2 {

/// The threads that wait for one mutex. Everyone who takes that mutex does so with lock().
/// Thread-safe.
class WaitingThreads {
 public:
  /// Locks `mutex`, always the same one. This thread counts as waiting until it has it.
  void lock(Mutex& mutex) PV2_ACQUIRE(mutex) {
    if (!mutex.try_lock()) wait_for(mutex);
  }
  /// Called between two sections, without the mutex. If a thread waits for it, this one waits until
  /// one of those has got it, but no longer than about twice the time that a thread needs to wake
  /// up.
  void give_way() const;

 private:
  void wait_for(Mutex& mutex) PV2_ACQUIRE(mutex);

  // Relaxed: they only say for how long it is worth waiting.
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::size_t> let_in_{0};  // how many of those that have waited have got the mutex
};

}  // namespace pv2
