// SPDX-License-Identifier: Apache-2.0
//
// OptionalTime: a wall time or none, in one word. std::optional needs two words, and every live
// procedure has one of these. None is stored as WallTime::max(), which is never a deadline.

#pragma once

#include <pv2/base/clock.h>

#include <optional>

namespace pv2 {

/// A value. The verbs are those of std::optional, from and to which it converts.
class OptionalTime {
 public:
  OptionalTime() = default;
  OptionalTime& operator=(WallTime time) noexcept {
    // WallTime::max() would mean none, so it is stored as one microsecond less.
    time_ = time == kNone ? time - Duration(1) : time;
    return *this;
  }
  OptionalTime& operator=(const std::optional<WallTime>& time) noexcept {
    if (!time) return reset(), *this;
    return *this = *time;
  }
  operator std::optional<WallTime>() const noexcept {
    return has_value() ? std::optional(time_) : std::nullopt;
  }

  [[nodiscard]] bool has_value() const noexcept { return time_ != kNone; }
  explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] const WallTime& operator*() const noexcept { return time_; }
  void reset() noexcept { time_ = kNone; }

 private:
  static constexpr WallTime kNone = WallTime::max();
  WallTime time_ = kNone;
};

}  // namespace pv2
