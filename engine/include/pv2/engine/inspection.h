// SPDX-License-Identifier: Apache-2.0
//
// Inspection: what can be seen of an executor from outside: its live procedures and why they do not
// go on, what runs, what is locked. Changes nothing.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/scheduler/procedure_scheduler.h>

#include <cstddef>
#include <vector>

#include "pv2/engine/explanation.h"
#include "pv2/engine/procedure_info.h"

namespace pv2 {

class Engine;

/// What ProcedureExecutor::inspect() returns. Copies are equivalent; each is valid as long as the
/// executor. Thread-safe.
class Inspection {
 public:
  /// A live procedure, as of its last record, with its fields. Makes an object of the user's class
  /// on this thread.
  [[nodiscard]] Result<ProcedureInfo> describe(ProcedureId id) const;
  /// Why a procedure does not go on, and why the procedures that it waits for do not, up to the
  /// root causes. The answer is of one moment and bounded; finding it stops the engine for about a
  /// millisecond at most. kNotFound: the procedure is not live, and its result is not in memory.
  [[nodiscard]] Result<Explanation> explain(ProcedureId id) const;
  /// The live procedures with an id above `after` for which `filter` is true, in order of id, at
  /// most `limit`. A procedure that is not durable yet is not shown. The engine is never stopped
  /// for longer than it takes to look at a thousand procedures, however many there are; so pages,
  /// and the procedures in one page, are of different moments.
  [[nodiscard]] ProcedurePage list(const ListFilter& filter, ProcedureId after = {},
                                   std::size_t limit = 100) const;
  /// All live procedures, in order of id, page by page.
  [[nodiscard]] std::vector<ProcedureInfo> list() const;
  /// The last steps (8 at most) of a procedure that is live, or of a root that has ended and whose
  /// result is still in the store.
  [[nodiscard]] Result<std::vector<HistoryEntry>> history(ProcedureId id) const;
  /// The steps and the offloaded work that run at this moment, and for how long.
  [[nodiscard]] std::vector<RunningProcedure> running() const;

  /// Procedures that wait for each other in a cycle, now.
  [[nodiscard]] std::vector<WaitCycle> deadlocks() const;
  /// Everything that is locked, waited for or limited: all holders, and all waiters in the order in
  /// which they will be served.
  [[nodiscard]] std::vector<LockInfo> locks() const;

  /// How many procedures are live: submitted, and their tree has not ended. A finished child counts
  /// if it is kept in memory because the tree may still have to undo it.
  [[nodiscard]] std::size_t live_procedures() const;
  /// The counts of every type that has any in this run, in order of registration. A procedure that
  /// was loaded counts only at its end; a duplicate of a submission does not count.
  [[nodiscard]] std::vector<TypeCounts> counts() const;
  /// The procedures that open() has set aside (UnreadableRecords::kSetAside), in order of id.
  /// wait() for one of them fails (kCorruption).
  [[nodiscard]] std::vector<UnreadableRecord> unreadable() const;

 private:
  friend class ProcedureExecutor;
  explicit Inspection(Engine& engine) noexcept : engine_(&engine) {}

  Engine* engine_;
};

}  // namespace pv2
