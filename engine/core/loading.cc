// SPDX-License-Identifier: Apache-2.0
//
// A call is put off only while loading runs, by the state as it is under loading_mutex_; release()
// takes that mutex after the state has changed. So no call is put off after the last one was made.

#include "core/loading.h"

namespace pv2 {

bool Loading::put_off(Task& call) {
  MutexLock lock(loading_mutex_);
  if (!runs()) return false;
  calls_.push_back(std::move(call));
  return true;
}

void Loading::release() {
  std::vector<Task> calls;
  {
    MutexLock lock(loading_mutex_);
    calls.swap(calls_);
  }
  over_.notify_all();
  for (Task& call : calls) call();
}

void Loading::wait() {
  if (!runs()) return;
  MutexLock lock(loading_mutex_);
  while (runs()) over_.wait(loading_mutex_);
}

}  // namespace pv2
