// SPDX-License-Identifier: Apache-2.0
//
// What a thread does when it finds the mutex taken: it spins for a while, then it spins and lets
// other threads have its CPU in turn, and then it sleeps.

#include "pv2/base/mutex.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace pv2 {
namespace {

// About 10 us: longer than nearly all critical sections.
constexpr int kLooks = 200;
// About 100 us: longer than it takes to publish a run of steps. Only one thread of those that wait
// for a mutex does this: more would take the CPU from the thread that holds it.
constexpr int kYields = 100;
constexpr int kLooksBetween = 20;
constexpr std::chrono::microseconds kOthersRan{20};

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

// Gives up when another thread has used this CPU meanwhile: then there is work for it, and who
// sleeps is woken when the mutex is free.
bool Mutex::take_between_yields() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point before = Clock::now();
  for (int i = 0; i < kYields; ++i) {
    std::this_thread::yield();
    for (int j = 0; j < kLooksBetween; ++j) {
      pause();
      if (mutex_.try_lock()) return true;
    }
    const Clock::time_point now = Clock::now();
    if (now - before >= kOthersRan) return false;
    before = now;
  }
  return false;
}

void Mutex::lock_contended() {
  found_taken.fetch_add(1, std::memory_order_relaxed);
  for (int i = 0; i < kLooks; ++i) {
    pause();
    if (mutex_.try_lock()) return;
  }
  if (!is_awaited_.exchange(true, std::memory_order_relaxed)) {
    const bool taken = take_between_yields();
    is_awaited_.store(false, std::memory_order_relaxed);
    if (taken) return;
  }
  slept.fetch_add(1, std::memory_order_relaxed);
  mutex_.lock();
}

}  // namespace pv2
