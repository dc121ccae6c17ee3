// SPDX-License-Identifier: Apache-2.0
//
// WaitCycle: entries that wait for each other in a circle, as data that can be shown, logged and
// acted upon: who waits for whom, for which key, since when. It says what was so at one moment and
// changes nothing.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/resource.h>

#include <cstdint>
#include <string>
#include <vector>

namespace pv2 {

/// One step of the circle: `waiter` goes on only after `awaited` has.
struct WaitLink {
  enum class Why : std::uint8_t {
    kHolder,    ///< `awaited` holds `key` in a mode that excludes the waiter.
    kAhead,     ///< `awaited` stands before it in the line for `key`.
    kLimit,     ///< `awaited` has, or will get first, one of the places that `key` is limited to.
    kChild,     ///< `awaited` is its descendant and waits.
    kReported,  ///< The owner of both has said so.
    kTurn,      ///< It is undone after others below `awaited`, its ancestor, or after that one.
  };

  ProcedureId waiter;
  ProcedureId awaited;
  Why why = Why::kHolder;
  ResourceKey key;   ///< For the first three.
  SteadyTime since;  ///< The waiter waits since; for kChild, the descendant does.
};

/// A closed circle: each link's `awaited` is the next one's `waiter`, and the last one's the
/// first's.
struct WaitCycle {
  std::vector<WaitLink> links;

  /// Whether `id` is one of those who wait.
  [[nodiscard]] bool has(ProcedureId id) const noexcept {
    for (const WaitLink& link : links) {
      if (link.waiter == id) return true;
    }
    return false;
  }
};

/// "procedure 7 waits for table ns:t, held by procedure 3; procedure 3 waits for its child 4; ...".
[[nodiscard]] std::string to_string(const WaitCycle& cycle);

}  // namespace pv2
