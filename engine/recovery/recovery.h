// SPDX-License-Identifier: Apache-2.0
//
// Recovery: from the rows of a store to executions that can go on.
//
//     rows --ChunkedScan--> executions --LoadedTrees, in order of id--> trees that hold their locks
//          --when everything was read, quarantine_problems(), restart_trees()--> queued
//
// A tree that cannot be understood is quarantined with its locks. Nothing runs before everything
// was read. Until then nothing on disk changes either, but for what is submitted meanwhile, if the
// engine loads in the background. Results that are kept are not read, however many there are;
// only a limit on them (RetentionPolicy) has their dates counted.

#pragma once

#include <optional>

#include "core/engine_core.h"
#include "recovery/ended_roots.h"
#include "recovery/leftover_rows.h"
#include "recovery/loaded_trees.h"
#include "recovery/record_reader.h"
#include "recovery/result_dates.h"
#include "recovery/stored_schemas.h"

namespace pv2 {

/// Used once. Owned by one thread.
class Recovery {
 public:
  explicit Recovery(EngineCore& core) : core_(core), trees_(core.clock) {}

  /// Reads what there is one of: how far ids were issued, limits, what fields meant. Called first.
  Status begin();
  /// Prepares the engine to accept new procedures while load() is at work. False: load() has to end
  /// first. Then there is nothing to load; or a field means something else than when it was
  /// written; or a record has an id that was never issued.
  [[nodiscard]] bool let_submissions_in(Effects& effects);
  /// Fills the engine's state. A failure leaves the store as it was, and leaves in the table of
  /// live executions what was linked until then; the caller deletes those executions. kStopping:
  /// the engine has halted meanwhile.
  Status load(Effects& effects);

 private:
  [[nodiscard]] ProcedureId durable_watermark();
  Status read_procedures();
  Status read_watermark();
  Status check_is_new();
  Status read_limits();
  Status link(ReadRecords read);
  Status check_new_ids(ProcedureId highest);
  void link(LoadedProcedure& loaded) PV2_REQUIRES(core_.state_mutex);

  EngineCore& core_;
  ProcedureId highest_;  // of all ids that were read
  // Ids from here on are issued while load() is at work; nullopt: none is.
  std::optional<ProcedureId> first_new_;
  StoredSchemas schemas_;
  EndedRoots ended_roots_;
  LoadedTrees trees_;
  LeftoverRows leftovers_;
  ResultDates dates_;
};

}  // namespace pv2
