// SPDX-License-Identifier: Apache-2.0
//
// run_task(): how every pool runs a task: on a thread that is marked as one of the engine's, and so
// that nothing the task throws leaves it.

#pragma once

#include "core/task_pool.h"

namespace pv2 {

/// Runs `task` on this thread, which belongs to `engine` meanwhile.
inline void run_task(const void* engine, Task& task) noexcept {
  const EngineThread mark(engine);
  try {
    task();
  } catch (...) {  // NOLINT(bugprone-empty-catch): offloaded work catches its own; this is a host's
                   // callback
  }
}

}  // namespace pv2
