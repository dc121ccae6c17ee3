// SPDX-License-Identifier: Apache-2.0
//
// Recovery: from the rows of a store to executions that can go on.
//
//     rows --ChunkedScan--> executions --LoadedTrees, in order of id--> trees that hold their locks
//          --when everything was read, quarantine_problems(), restart_trees()--> queued
//
// A tree that cannot be understood is quarantined with its locks. Nothing runs, and nothing on disk
// changes, before everything was read. Results that are kept are not read, however many there are;
// only a limit on them (RetentionPolicy) has their dates counted.

#pragma once

#include "core/engine_core.h"
#include "recovery/ended_roots.h"
#include "recovery/leftover_rows.h"
#include "recovery/loaded_trees.h"
#include "recovery/record_reader.h"
#include "recovery/result_dates.h"
#include "recovery/stored_schemas.h"

namespace pv2 {

/// Used once, by open(). Owned by one thread.
class Recovery {
 public:
  explicit Recovery(EngineCore& core) : core_(core), trees_(core.clock) {}

  /// Fills the engine's state. A failure leaves the store as it was, and leaves in the table of
  /// live executions what was linked until then; the caller deletes those executions.
  Status load(Effects& effects);

 private:
  Status read_store();
  Status read_watermark();
  Status read_limits();
  Status link(ReadRecords read);

  EngineCore& core_;
  ProcedureId highest_;  // of all ids that were read
  StoredSchemas schemas_;
  EndedRoots ended_roots_;
  LoadedTrees trees_;
  LeftoverRows leftovers_;
  ResultDates dates_;
};

}  // namespace pv2
