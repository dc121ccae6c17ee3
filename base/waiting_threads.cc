// SPDX-License-Identifier: Apache-2.0
//
// Whoever gives way yields the CPU again and again, because a thread that slept would need a
// wake-up itself.

#include "pv2/base/waiting_threads.h"

#include <thread>

namespace pv2 {

void WaitingThreads::wait_for(Mutex& mutex) {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  mutex.lock();
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  let_in_.fetch_add(1, std::memory_order_relaxed);
}

void WaitingThreads::give_way() const {
  // More than twice the time that a thread needs to wake up on another CPU.
  constexpr int kYields = 256;
  const std::size_t before = let_in_.load(std::memory_order_relaxed);
  for (int i = 0; i < kYields && waiting_.load(std::memory_order_relaxed) != 0; ++i) {
    if (let_in_.load(std::memory_order_relaxed) != before) return;
    std::this_thread::yield();
  }
}

}  // namespace pv2
