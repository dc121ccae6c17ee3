// SPDX-License-Identifier: Apache-2.0
//
// Repairs: the orders of operators. Each is checked under the state mutex against a tree that
// stands still: nobody is in flight where it matters. (An order to end a tree waits until the steps
// under way are over.) An order becomes one batch: a state record as a step would
// have written it, and the audit row. From then on it is published like any record, so nothing can
// be half done. Whoever it concerns counts as in flight until then.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine_core.h"
#include "messages.h"
#include "publisher.h"
#include "results.h"

namespace pv2 {

/// Carries out each WaitingOrder that waits for nobody any more, or says why it cannot be.
void carry_out_waiting_orders(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex);
/// None of them is carried out in this run, for the reason `why`.
void refuse_waiting_orders(EngineCore& core, const Status& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Thread-safe.
class Repairs {
 public:
  Repairs(EngineCore& core, Publisher& publisher, Results& results, Messages& messages)
      : core_(core), publisher_(publisher), results_(results), messages_(messages) {}

  void repair(ProcedureId id, RepairVerb verb, RepairNote note, Reply<Status> reply);
  Result<std::vector<std::string>> preview(ProcedureId id, RepairVerb verb);
  Result<std::vector<AuditEntry>> audit(ProcedureId id);

 private:
  EngineCore& core_;
  Publisher& publisher_;
  Results& results_;
  Messages& messages_;
};

}  // namespace pv2
