// SPDX-License-Identifier: Apache-2.0
//
// EndedRoots: which roots have ended, as far as recovery has to know. The results that are kept are
// not scanned, however many there are; the store is asked about a root only if rows of its
// descendants are left and rows of its own are not.

#pragma once

#include "core/engine_core.h"
#include "recovery/record_reader.h"

namespace pv2 {

/// Owned by one thread.
class EndedRoots {
 public:
  /// `root` has ended.
  void add(ProcedureId root) { ended_.insert_or_assign(root, true); }
  /// Asks the store about each root that `read` names and that is neither linked, nor set aside,
  /// nor in `read` itself. Called before `read` is linked, and after all records of lower ids were.
  Status ask_about(EngineCore& core, const ReadRecords& read) PV2_EXCLUDES(core.state_mutex);
  [[nodiscard]] bool has_ended(ProcedureId root) const;

 private:
  Status ask_about(EngineCore& core, ProcedureId root, const ReadRecords& read)
      PV2_EXCLUDES(core.state_mutex);

  FlatMap<ProcedureId, bool> ended_;  // of roots that were added or asked about
};

}  // namespace pv2
