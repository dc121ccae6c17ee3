// SPDX-License-Identifier: Apache-2.0
//
// Messages: the aborts and signals that are sent to a live procedure from outside. A message is
// checked and numbered under the state mutex, and written as a row of its own. It takes effect and
// is answered only when that row is durable. The order of commits decides every race: a message
// that becomes durable after its procedure's end is answered as too late, and its row is deleted.
//
// An accepted abort can always be carried out: from its acceptance on, no member of the tree begins
// its point of no return (Workers sets such members aside).

#pragma once

#include "core/engine_core.h"
#include "pv2/engine/abort_options.h"

namespace pv2 {

class Publisher;
class Results;
struct Effects;

/// Thread-safe.
class Messages {
 public:
  Messages(EngineCore& core, Publisher& publisher, Results& results)
      : core_(core), publisher_(publisher), results_(results) {}

  /// Both wait until the store is loaded.
  void abort(ProcedureId id, AbortOptions options, Reply<Status> reply);
  void signal(ProcedureId id, std::string name, std::string payload, Reply<Status> reply);
  /// Does not wait for that. With an `entry`, the abort is an operator's order, and the audit names
  /// the operator.
  void abort(ProcedureId id, AbortOptions options, Reply<Status> reply, const AuditEntry* entry);

 private:
  void send(ProcedureId id, std::string name, std::string payload, Reply<Status> reply);
  [[nodiscard]] Status why_no_signal(Execution& to, const InboxMessage& signal,
                                     std::size_t bytes_max) const PV2_REQUIRES(core_.state_mutex);

  EngineCore& core_;
  Publisher& publisher_;
  Results& results_;
};

/// The message is durable: it takes effect, or is answered as too late.
void message_published(EngineCore& core, MessageCommit& commit, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Why an operator's order to undo a tree adds nothing to an earlier abort, or OK.
[[nodiscard]] Status why_not_aborted_anew(const Execution& root);

}  // namespace pv2
