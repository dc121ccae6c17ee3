// SPDX-License-Identifier: Apache-2.0
//
// TimedWork: work that is due at a time and is no deadline of a procedure. The timer thread asks
// each TimedWork when it is due, and fires it. In an executor without threads a thread of the host
// does.

#pragma once

#include <pv2/base/clock.h>

#include <cstddef>
#include <optional>

namespace pv2 {

/// fire() is called by one thread at a time; it must not block and calls no user code.
class TimedWork {
 public:
  virtual ~TimedWork() = default;
  /// When fire() is to be called next; none: no time is known.
  [[nodiscard]] virtual std::optional<SteadyTime> next_due() = 0;
  /// Does the work that is due. Returns how many pieces there were.
  virtual std::size_t fire(SteadyTime now) = 0;
};

}  // namespace pv2
