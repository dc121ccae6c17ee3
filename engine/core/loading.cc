// SPDX-License-Identifier: Apache-2.0
//
// A call is put off until release() has found, under loading_mutex_, that no call is left. So no
// call is forgotten, and none is made before one that came earlier.

#include "core/loading.h"

#include <pv2/base/assert.h>

namespace pv2 {

bool Loading::put_off(Task& call) {
  MutexLock lock(loading_mutex_);
  if (!waits_for_release_.load(std::memory_order_relaxed)) return false;
  calls_.push_back(std::move(call));
  return true;
}

void Loading::release() {
  PV2_ASSERT(!runs(), "calls are made when loading is over");
  for (;;) {
    std::vector<Task> calls;
    {
      MutexLock lock(loading_mutex_);
      calls.swap(calls_);
      if (calls.empty()) waits_for_release_.store(false, std::memory_order_release);
    }
    over_.notify_all();
    if (calls.empty()) return;
    for (Task& call : calls) call();
  }
}

void Loading::wait() {
  if (!runs()) return;
  MutexLock lock(loading_mutex_);
  while (runs()) over_.wait(loading_mutex_);
}

}  // namespace pv2
