// SPDX-License-Identifier: Apache-2.0
//
// ResultDates: the dates of the results that a store keeps. Recovery reads them only if a limit
// (RetentionPolicy) needs their number or their size, or if it found ended roots without a date,
// which older programs leave. Such roots are dated now: that is late, never early.

#pragma once

#include <string>
#include <vector>

#include "core/engine_core.h"
#include "recovery/record_reader.h"

namespace pv2 {

struct KeptResult;

/// Owned by one thread.
class ResultDates {
 public:
  /// `root` has ended, and its rows are among those of live procedures.
  void add(const EndedRoot& root);
  /// Counts the results for the limits. After everything live was linked.
  Status read(EngineCore& core) PV2_EXCLUDES(core.state_mutex);
  /// Has the missing dates written, and the dates of results that are gone deleted.
  void write(const EngineCore& core, Effects& effects);

 private:
  std::vector<EndedRoot> undated_;  // no row says when they ended
  std::vector<std::string> stale_;  // keys of dates whose results are gone
};

}  // namespace pv2
