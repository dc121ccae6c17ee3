// SPDX-License-Identifier: Apache-2.0
//
// What a thread does when it finds the mutex taken: it spins for a while, then blocks.

#include "pv2/base/mutex.h"

namespace pv2 {
namespace {

// About 10 us: longer than the longest usual critical section, the publication of a run of steps.
constexpr int kLooks = 200;

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();  // leaves the execution units to the thread that holds the lock
#endif
}

}  // namespace

void Mutex::lock_contended() {
  for (int i = 0; i < kLooks; ++i) {
    pause();
    if (mutex_.try_lock()) return;
  }
  mutex_.lock();
}

}  // namespace pv2
