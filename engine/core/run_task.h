// SPDX-License-Identifier: Apache-2.0
//
// run_task(): how every pool runs a task. The thread is marked as one of the engine's while the
// task runs. A task that throws ends the process: it is the engine's own code, which has found no
// memory, and what it should have done would never be done. It calls the host by call_back().

#pragma once

#include "core/task_pool.h"

namespace pv2 {

/// Runs `task` on this thread, which is marked as one of `engine`'s until the task has ended and
/// was destroyed: what it owns may be the last reference to the executor, whose destructor must
/// know that it would wait for itself.
inline void run_task(const void* engine, Task& task) noexcept {
  const EngineThread mark(engine);
  task();
  task = Task();
}

}  // namespace pv2
