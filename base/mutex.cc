// SPDX-License-Identifier: Apache-2.0
//
// What a thread does when it finds the mutex taken: it spins for a while, then it spins and lets
// other threads have its CPU in turn, and then it blocks.

#include "pv2/base/mutex.h"

#include <atomic>
#include <thread>

namespace pv2 {
namespace {

// About 10 us: longer than nearly all critical sections.
constexpr int kLooks = 200;
// About 100 us if no other thread wants the CPU: longer than it takes to publish a run of steps.
// If there are more threads than CPUs, the thread that holds the mutex may need this one.
constexpr int kYields = 100;
constexpr int kLooksBetween = 20;

// Relaxed: they are counts, and nothing is published through them.
alignas(64) std::atomic<std::uint64_t> found_taken{0};
alignas(64) std::atomic<std::uint64_t> slept{0};

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();  // leaves the execution units to the thread that holds the lock
#endif
}

}  // namespace

MutexContention mutex_contention() noexcept {
  return {found_taken.load(std::memory_order_relaxed), slept.load(std::memory_order_relaxed)};
}

void Mutex::lock_contended() {
  found_taken.fetch_add(1, std::memory_order_relaxed);
  for (int i = 0; i < kLooks; ++i) {
    pause();
    if (mutex_.try_lock()) return;
  }
  for (int i = 0; i < kYields; ++i) {
    std::this_thread::yield();
    for (int j = 0; j < kLooksBetween; ++j) {
      pause();
      if (mutex_.try_lock()) return;
    }
  }
  slept.fetch_add(1, std::memory_order_relaxed);
  mutex_.lock();
}

}  // namespace pv2
