// SPDX-License-Identifier: Apache-2.0
//
// WaitCycle: a cycle of entries that wait for each other, as data that can be shown, logged and
// acted upon: who waits for whom, for which key, since when. It describes one moment and changes
// nothing.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/resource.h>

#include <cstdint>
#include <string>
#include <vector>

namespace pv2 {

/// One link of the cycle: `waiter` goes on only after `awaited` has.
struct WaitLink {
  enum class Why : std::uint8_t {
    kHolder,    ///< `awaited` holds `key` in a mode that excludes the waiter.
    kAhead,     ///< `awaited` stands before the waiter in the line for `key`.
    kLimit,     ///< `awaited` has, or will get first, one of the places that `key` is limited to.
    kChild,     ///< `awaited` is a descendant of the waiter, and waits.
    kReported,  ///< The owner of both has reported it.
    kTurn,      ///< The waiter is undone after `awaited`, its ancestor, or after others below that.
  };

  ProcedureId waiter;
  ProcedureId awaited;
  Why why = Why::kHolder;
  ResourceKey key;   ///< For the first three.
  SteadyTime since;  ///< Since when the waiter waits; for kChild, the descendant.
};

/// A closed cycle: each link's `awaited` is the next link's `waiter`, and the last one's is the
/// first's.
struct WaitCycle {
  std::vector<WaitLink> links;

  /// Whether `id` is one of the waiters.
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
