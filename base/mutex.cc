// SPDX-License-Identifier: Apache-2.0
//
// What a thread does when it finds the mutex taken: it spins for a while, then blocks.

#include "pv2/base/mutex.h"

#include <atomic>

namespace pv2 {
namespace {

// About 10 us: longer than the longest usual critical section, the publication of a run of steps.
constexpr int kLooks = 200;

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
  slept.fetch_add(1, std::memory_order_relaxed);
  mutex_.lock();
}

}  // namespace pv2
