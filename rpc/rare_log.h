// SPDX-License-Identifier: Apache-2.0
//
// RareLog: warnings that a peer, or a full table of descriptors, could cause thousands of times a
// second. One is written in each period; the next one says how many were left out.

#pragma once

#include <fmt/format.h>
#include <pv2/base/clock.h>
#include <pv2/base/log.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace pv2 {

/// Owned by one thread.
class RareLog {
 public:
  /// Both outlive it.
  RareLog(const LogSink& sink, const Clock& clock) : sink_(sink), clock_(clock) {}

  void warn(std::string_view line) {
    const SteadyTime now = clock_.steady_now();
    if (now < quiet_until_) {
      ++left_out_;
      return;
    }
    quiet_until_ = now + kPeriod;
    const std::uint64_t left_out = std::exchange(left_out_, 0);
    log(sink_, LogLevel::kWarning,
        left_out == 0 ? std::string(line)
                      : fmt::format("{} ({} warnings before it were left out)", line, left_out));
  }

 private:
  // An operator who looks at the log sees that it goes on, and can still read the rest.
  static constexpr Duration kPeriod = std::chrono::seconds(10);

  const LogSink& sink_;
  const Clock& clock_;
  SteadyTime quiet_until_ = SteadyTime::min();
  std::uint64_t left_out_ = 0;
};

}  // namespace pv2
