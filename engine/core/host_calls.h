// SPDX-License-Identifier: Apache-2.0
//
// Callbacks of the host that run on the thread that has their answer (CallbackThread::kEngine). The
// thread keeps the requests that they make durable, and publishes them after the callbacks have
// returned. So the submissions and acknowledgements of many callbacks share one critical section.

#pragma once

#include <pv2/store/commit_request.h>

#include <cstddef>
#include <span>

#include "core/task_pool.h"

namespace pv2 {

/// How many callbacks a thread calls of those that other callbacks on this thread have caused; the
/// pool calls the rest. Enough for a host that goes on with some procedures at once: a life has
/// three callbacks.
inline constexpr std::size_t kCausedCallsMost = 256;

/// What callbacks have left to the thread that called them.
struct LeftByHost {
  TaskList calls;      ///< Callbacks that they have caused, beyond those that were called.
  CommitList durable;  ///< Requests to be published.
};

/// Calls `calls` on this thread, in order; each drops what the host throws (call_back()). The
/// caller holds no mutex. A callback may use the executor, and so cause further callbacks on this
/// thread. The function calls these after the callback has returned, so callbacks that cause each
/// other need no more stack than one. It stops after kCausedCallsMost of them and adds the rest to
/// `left`, so this thread comes back from callbacks that cause each other without an end. If this
/// thread is in a callback already, `left` stays as it is: the call around it gets what the
/// callbacks cause.
void call_host(const void* engine, std::span<Task> calls, LeftByHost& left);

/// The requests that this thread keeps while it is in a callback of `engine`. nullptr: it is in
/// none.
[[nodiscard]] CommitList* kept_for_publication(const void* engine) noexcept;

}  // namespace pv2
