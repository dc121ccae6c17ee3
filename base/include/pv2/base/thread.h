// SPDX-License-Identifier: Apache-2.0
//
// start_thread: the one way in which pv2 starts a thread. When the machine can start no more
// threads (a limit on processes, of a container, on memory), the caller gets a Status, not an
// exception. A thread on whose work others rarely wait lets them go first.

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

/// The calling thread gets the processor later than threads of the priority that it was started
/// with, and less often: its nice value becomes 5 more, 19 at most. A thread with 5 more gets a
/// third as much as another one of a processor that both want. For work on which others rarely
/// wait; the thread cannot take it back.
void let_others_go_first() noexcept;

/// For tests: from now on only this many more threads can be started; nullopt ends the limit.
/// Thread-safe; applies to the whole process.
void limit_new_threads_for_tests(std::optional<std::size_t> left) noexcept;

}  // namespace pv2
