// SPDX-License-Identifier: Apache-2.0
//
// Callbacks of the host that run on the thread that has their answer (CallbackThread::kEngine).
// What they make durable is published when they have returned: so many submissions and
// acknowledgements, each made in a callback of its own, share one critical section.

#pragma once

#include <pv2/store/commit_request.h>

#include <cstddef>
#include <span>

#include "core/task_pool.h"

namespace pv2 {

/// After this many callbacks that callbacks on the same thread have caused, another thread calls
/// the rest. Enough for a host that goes on with some procedures at once: a life has three
/// callbacks.
inline constexpr std::size_t kCausedCallsMost = 256;

/// What callbacks have left to the thread that called them.
struct LeftByHost {
  TaskList calls;      ///< Callbacks that they have caused, beyond those that were called.
  CommitList durable;  ///< Requests to be published.
};

/// Calls them on this thread, in order; their exceptions are dropped. The caller holds no mutex. A
/// callback may use the executor, and so cause further callbacks on this thread: these are called
/// when it has returned, so that callbacks that cause each other need no more stack than one. When
/// many of them were called, the rest is left: so this thread comes back from callbacks that cause
/// each other without an end. In a callback it returns nothing: what was caused belongs to the call
/// around it.
[[nodiscard]] LeftByHost call_host(const void* engine, std::span<Task> calls);

/// If this thread is in a callback of `engine`, what it keeps for publication; otherwise nullptr.
[[nodiscard]] CommitList* kept_for_publication(const void* engine) noexcept;

}  // namespace pv2
