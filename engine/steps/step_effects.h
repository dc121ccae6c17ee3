// SPDX-License-Identifier: Apache-2.0
//
// StepEffects: what user code asked for in one run of a step, collected by its StepContext: rows,
// signals, children and roots. All of it takes effect with the record of the run, or none of it.

#pragma once

#include <memory>

#include "model/inbox.h"
#include "steps/row_changes.h"
#include "steps/spawned_children.h"
#include "steps/submitted_roots.h"

namespace pv2 {

/// Owned by the worker that runs the step.
struct StepEffects {
  explicit StepEffects(const StepFrame& run) : frame(run), rows(run), children(run), roots(run) {}

  const StepFrame& frame;  ///< Of the run.
  RowChanges rows;
  SpawnedChildren children;
  SubmittedRoots roots;
  std::unique_ptr<InboxUse> inbox_use;  ///< What the step asked for by signal(); nullptr: nothing.
  Status bad_signal;                    ///< Not OK: the step asked for a signal that cannot exist.
  Status thrown;                        ///< Not OK: the first exception of a call of the context.

  /// OK, or why the step fails, or its undo is parked, whatever user code answers.
  [[nodiscard]] const Status& refused() const noexcept {
    return bad_signal.ok() ? rows.refused() : bad_signal;
  }
  [[nodiscard]] bool wants_signals() const noexcept {
    return inbox_use && !inbox_use->wanted.empty();
  }
  /// Makes children and roots part of the batch, if there are any. After a failure the caller
  /// abandons them.
  [[nodiscard]] Status adopt_procedures() {
    Status status;
    if (children.size() != 0) status = children.adopt();
    if (status.ok() && roots.size() != 0) status = roots.adopt();
    return status;
  }
  /// Forgets children and roots. The caller empties the batch, which has their rows.
  void abandon_procedures() {
    roots.abandon();
    children.abandon();
  }
};

}  // namespace pv2
