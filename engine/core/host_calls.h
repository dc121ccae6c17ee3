// SPDX-License-Identifier: Apache-2.0
//
// Callbacks of the host that run on the thread that has their answer (CallbackThread::kEngine).

#pragma once

#include <span>

#include "core/task.h"

namespace pv2 {

class TaskPool;

/// Calls them on this thread, in order; their exceptions are dropped. The caller holds no mutex. A
/// callback may use the executor, and so cause further callbacks on this thread: these are called
/// when it has returned, so that callbacks that cause each other need no more stack than one. When
/// many of them were called, `pool` calls the rest: so this thread comes back from callbacks that
/// cause each other without an end.
void call_host(const void* engine, TaskPool& pool, std::span<Task> calls);

}  // namespace pv2
