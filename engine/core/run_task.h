// SPDX-License-Identifier: Apache-2.0
//
// run_task(): how every pool runs a task. The thread is marked as one of the engine's while the
// task runs, and exceptions of the task are caught.

#pragma once

#include "core/task_pool.h"

namespace pv2 {

/// Runs `task` on this thread, which is marked as one of `engine`'s until the task has ended and
/// was destroyed: what it owns may be the last reference to the executor, whose destructor must
/// know that it would wait for itself.
inline void run_task(const void* engine, Task& task) noexcept {
  const EngineThread mark(engine);
  try {
    task();
  } catch (...) {  // NOLINT(bugprone-empty-catch): offloaded work catches its own; this is a host's
                   // callback
  }
  task = Task();
}

}  // namespace pv2
