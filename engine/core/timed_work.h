// SPDX-License-Identifier: Apache-2.0
//
// TimedWork: what happens at its time beside the deadlines of procedures. The timer thread, or the
// host's in an executor without threads, asks each when it wants to be looked at, and fires it.

#pragma once

#include <pv2/base/clock.h>

#include <cstddef>
#include <optional>

namespace pv2 {

/// fire() is called by one thread at a time; it must not block and calls no user code.
class TimedWork {
 public:
  virtual ~TimedWork() = default;
  /// When it wants to be fired next; none: not at any time that is known.
  [[nodiscard]] virtual std::optional<SteadyTime> next_due() = 0;
  /// Does what is due; returns how much there was.
  virtual std::size_t fire(SteadyTime now) = 0;
};

}  // namespace pv2
