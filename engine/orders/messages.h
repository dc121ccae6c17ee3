// SPDX-License-Identifier: Apache-2.0
//
// Messages: what is sent to a live procedure from outside. A message is checked and numbered under
// the state mutex, written as a row of its own, and answered when that is durable; only then it has
// its effect. The order of commits decides every race: a message that is durable after its
// procedure's end is answered as too late, and its row is deleted.
//
// An abort needs one thing more: from its acceptance on no member of the tree begins its point of
// no return (Workers sets such members aside), so that what was accepted can be carried out.

#pragma once

#include "core/engine_core.h"
#include "core/publisher.h"
#include "pv2/engine/abort_options.h"
#include "submission/results.h"

namespace pv2 {

/// Thread-safe.
class Messages {
 public:
  Messages(EngineCore& core, Publisher& publisher, Results& results)
      : core_(core), publisher_(publisher), results_(results) {}

  /// With an `entry` it is the order of an operator, who is named in the audit too.
  void abort(ProcedureId id, AbortOptions options, Reply<Status> reply,
             const AuditEntry* entry = nullptr);
  void signal(ProcedureId id, std::string name, std::string payload, Reply<Status> reply);

 private:
  [[nodiscard]] Status why_no_signal(Execution& to, const InboxMessage& signal,
                                     std::size_t bytes_max) const PV2_REQUIRES(core_.state_mutex);

  EngineCore& core_;
  Publisher& publisher_;
  Results& results_;
};

/// A message is durable: it takes effect, or is too late.
void message_published(EngineCore& core, MessageCommit& commit, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Why the order of an operator to undo a tree adds nothing to an abort before it, or OK.
[[nodiscard]] Status why_not_aborted_anew(const Execution& root);

}  // namespace pv2
