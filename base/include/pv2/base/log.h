// SPDX-License-Identifier: Apache-2.0
//
// Logging goes to a callback that the host gives. pv2 formats a line and hands it to that sink;
// only without a callback does pv2 itself write warnings and errors to stderr. The sink runs
// outside every lock of pv2.

#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace pv2 {

enum class LogLevel : std::uint8_t { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;

/// Receives one finished line, without a newline, from any thread; it should not block. What it
/// throws is swallowed.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// The sink used when the host gives none: warnings and errors to stderr.
[[nodiscard]] LogSink default_log_sink();

/// Calls `sink`, swallowing what it throws: a log line must never decide the fate of a procedure.
void log(const LogSink& sink, LogLevel level, std::string_view line) noexcept;

}  // namespace pv2
