// SPDX-License-Identifier: Apache-2.0
//
// start_thread: the one way in which pv2 makes a thread. A machine that has none left (a limit of
// processes, of a container, of memory) is an answer here and no exception.

#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>

#include "pv2/base/status.h"

namespace pv2 {

/// Starts a thread that runs `work`. kResourceExhausted: there is none left; the message says what
/// it was for and why. Thread-safe.
[[nodiscard]] Result<std::thread> start_thread(std::string_view what, std::function<void()> work);

/// For tests: from now on this many threads can be started and no more; nullopt ends the limit.
/// Thread-safe; in force in the whole process.
void limit_new_threads_for_tests(std::optional<std::size_t> left) noexcept;

}  // namespace pv2
