// SPDX-License-Identifier: Apache-2.0
//
// The guard around the host's log sink, and the sink of hosts that give none.

#include "pv2/base/log.h"

#include <cstdio>
#include <string>

namespace pv2 {

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::kDebug:
      return "DEBUG";
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kWarning:
      return "WARNING";
    case LogLevel::kError:
      return "ERROR";
  }
  return "UNKNOWN_LEVEL";
}

LogSink default_log_sink() {
  return [](LogLevel level, std::string_view line) {
    if (level < LogLevel::kWarning) return;
    const std::string_view name = to_string(level);
    std::fprintf(stderr, "pv2 %.*s: %.*s\n", static_cast<int>(name.size()), name.data(),
                 static_cast<int>(line.size()), line.data());
  };
}

void log(const LogSink& sink, LogLevel level, std::string_view line) noexcept {
  if (!sink) return;
  try {
    sink(level, line);
  } catch (...) {  // NOLINT(bugprone-empty-catch): promised in log.h
  }
}

}  // namespace pv2
