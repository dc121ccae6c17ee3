// SPDX-License-Identifier: Apache-2.0
//
// start_thread: the one way in which pv2 starts a thread. When the machine can start no more
// threads (a limit on processes, of a container, on memory), the caller gets a Status, not an
// exception. let_others_go_first() lowers the priority of a thread for background work.

#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>

#include "pv2/base/status.h"

namespace pv2 {

/// The most bytes of a thread's name (Linux: TASK_COMM_LEN, without the final zero).
inline constexpr std::size_t kThreadNameBytes = 15;

/// Starts a thread that runs `work`. `name` is what `top -H`, `perf` and debuggers call it: at most
/// kThreadNameBytes; the rest is cut off. kResourceExhausted: the machine can start no more; the
/// message says for `what` the thread was and why it could not be started. Thread-safe.
[[nodiscard]] Result<std::thread> start_thread(std::string_view name, std::string_view what,
                                               std::function<void()> work);

/// Lowers the priority of the calling thread for good: its nice value rises by 5, to 19 at most. If
/// it wants a processor that a thread with the old value wants too, it gets a quarter of it. For
/// background work on which others rarely wait. Never fails: a thread may always do this.
void let_others_go_first() noexcept;

/// For tests: from now on only this many more threads can be started; nullopt ends the limit.
/// Thread-safe; applies to the whole process.
void limit_new_threads_for_tests(std::optional<std::size_t> left) noexcept;

}  // namespace pv2
