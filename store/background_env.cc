// SPDX-License-Identifier: Apache-2.0
//
// LevelDB schedules the next work of a database only when the one before has begun.

#include "background_env.h"

#include <utility>

#include "pv2/base/assert.h"
#include "pv2/base/thread.h"

namespace pv2 {

Status BackgroundEnv::start() {
  PV2_ASSERT(!thread_.joinable(), "a database has one thread for its background work");
  auto thread = start_thread("pv2-leveldb", "the background work of LevelDB", [this] { run(); });
  Status started = thread.status();
  if (started.ok()) thread_ = *std::move(thread);
  return started;
}

void BackgroundEnv::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(work_mutex_);
    PV2_ASSERT(!work_, "a database waits for its background work before it is destroyed");
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
  MutexLock lock(work_mutex_);
  stopping_ = false;
}

void BackgroundEnv::Schedule(void (*work)(void*), void* argument) {
  {
    MutexLock lock(work_mutex_);
    PV2_ASSERT(!work_, "a database schedules one background work at a time");
    work_ = {work, argument};
  }
  wake_.notify_one();
}

void BackgroundEnv::run() {
  let_others_go_first();
  for (;;) {
    Work next{};
    {
      MutexLock lock(work_mutex_);
      while (!work_ && !stopping_) wake_.wait(work_mutex_);
      if (!work_) return;
      next = *std::exchange(work_, std::nullopt);
    }
    next.function(next.argument);
  }
}

}  // namespace pv2
