// SPDX-License-Identifier: Apache-2.0
//
// Callbacks of the host that run on the thread that has their answer (CallbackThread::kEngine).

#pragma once

#include <span>

#include "core/task.h"

namespace pv2 {

/// Calls them on this thread, in order; their exceptions are dropped. The caller holds no mutex,
/// and nothing waits for it that it has queued in the store. A callback may use the executor, and
/// so cause further callbacks on this thread: these are called when it has returned, so that
/// callbacks that cause each other need no more stack than one.
void call_host(const void* engine, std::span<Task> calls) noexcept;

}  // namespace pv2
