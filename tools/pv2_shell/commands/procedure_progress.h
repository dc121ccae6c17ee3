// SPDX-License-Identifier: Apache-2.0
//
// ProcedureProgress: keeps the progress line true while a procedure runs: which step, how far in
// words, for how long, and what it waits for. It asks the master, one question at a time, and shows
// the newest answer; it never holds the wait up, and without a terminal it asks nothing. When
// the wait ends, so do its questions.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/engine/explanation.h>
#include <pv2/engine/procedure_info.h>

#include <memory>
#include <optional>
#include <string>

#include "session/shell.h"

namespace pv2::shell {

/// Owned by one thread, and so is the shell.
class ProcedureProgress {
 public:
  ProcedureProgress(Shell& shell, ProcedureId id);
  ~ProcedureProgress();
  ProcedureProgress(const ProcedureProgress&) = delete;
  ProcedureProgress& operator=(const ProcedureProgress&) = delete;

  /// To be called again and again during the wait.
  void look();

 private:
  struct Shared;

  Shell& shell_;
  const ProcedureId id_;
  const SteadyTime begin_;
  CallTicket list_;  ///< The newest questions.
  CallTicket explain_;
  // Shared with answers that are on their way when the wait ends.
  const std::shared_ptr<Shared> shared_;
};

/// "waits for table default:t, held by procedure 3", for what holds a procedure up; empty when it
/// only runs.
[[nodiscard]] std::string waiting_in_words(const Explanation& explanation);

}  // namespace pv2::shell
