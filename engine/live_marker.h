// SPDX-License-Identifier: Apache-2.0
//
// LiveMarker: now and then writes down where in the store live procedures are (LiveMark), so that
// who opens it need not read every result that is kept. Of a row with an id below the mark is true:
//
//   - its procedure is live, and the mark names it; or
//   - it belongs to a root that has ended, whose descendants' rows are gone.
//
// That stays true when the mark is old, as ids only grow. So a mark goes no higher than the lowest
// id that was issued to a child whose record is on its way (a root is in the table of live ones
// from the moment that it has an id), and than the rows of members that have left and are not
// deleted yet. While records are set aside, of which nobody knows whose they are, there is none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine_core.h"
#include "publisher.h"

namespace pv2 {

/// By one thread at a time: the next mark is due when this one is on its way.
class LiveMarker {
 public:
  /// A mark is made after so many ids: what is to be read beyond the mark takes half a second.
  static constexpr std::uint64_t kEvery = 65'536;
  /// Live procedures below a mark; beyond it the mark is lower. They take 128 KiB, about.
  static constexpr std::size_t kNamesMax = 65'536;
  /// kEvery, unless a test wants marks more often. Set before an engine is opened.
  static inline std::uint64_t every = kEvery;

  LiveMarker(EngineCore& core, Publisher& publisher) : core_(core), publisher_(publisher) {}

  /// On the pool.
  void mark() PV2_EXCLUDES(core_.state_mutex);

 private:
  void delete_what_was_dropped() PV2_EXCLUDES(core_.state_mutex);
  [[nodiscard]] std::optional<ProcedureId> highest_mark() PV2_REQUIRES(core_.state_mutex);
  [[nodiscard]] LiveMark name_live_below(ProcedureId highest) PV2_EXCLUDES(core_.state_mutex);

  EngineCore& core_;
  Publisher& publisher_;
  const std::uint64_t every_ = every;
  ProcedureId written_;  // of who marks: the highest one of this life
};

}  // namespace pv2
