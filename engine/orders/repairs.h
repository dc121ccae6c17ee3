// SPDX-License-Identifier: Apache-2.0
//
// Repairs: the orders of operators. Each order is planned under the state mutex, against a tree
// that stands still where it matters (repair_plan.h), and is one atomic batch with its audit row
// (repair_record.h). An abort is sent as a message instead. An order to end a tree waits until the
// running steps have ended (bypass.h).

#pragma once

#include <string>
#include <vector>

#include "core/engine_core.h"

namespace pv2 {

class Messages;
class Publisher;
class Results;

/// Thread-safe.
class Repairs {
 public:
  Repairs(EngineCore& core, Publisher& publisher, Results& results, Messages& messages)
      : core_(core), publisher_(publisher), results_(results), messages_(messages) {}

  /// The reply is OK when the order is durable, else the refusal.
  void repair(ProcedureId id, RepairVerb verb, RepairNote note, Reply<Status> reply);
  /// What the order would do, one line for each effect; or the refusal that it would get.
  [[nodiscard]] Result<std::vector<std::string>> preview(ProcedureId id, RepairVerb verb);
  /// The orders that were carried out in the tree of a root, or about a child; oldest first. Reads
  /// the store.
  [[nodiscard]] Result<std::vector<AuditEntry>> audit(ProcedureId id);

 private:
  EngineCore& core_;
  Publisher& publisher_;
  Results& results_;
  Messages& messages_;
};

}  // namespace pv2
