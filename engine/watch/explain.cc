// SPDX-License-Identifier: Apache-2.0
//
// Follows the waits breadth first. The reasons of one procedure are found by WaitReasons.

#include "watch/explain.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/state_lock.h"
#include "model/names.h"
#include "pv2/engine/procedure_registry.h"
#include "tree/member_step.h"
#include "tree/members_at_work.h"
#include "watch/cycles.h"
#include "watch/wait_reasons.h"

namespace pv2 {
namespace {

// Nobody reads an answer with more procedures.
constexpr std::size_t kProceduresMax = 64;

// The answer about a root that has ended, whose result is in memory.
Explanation ended(const ProcedureResult& result) {
  Explanation answer;
  auto& procedure = answer.procedures.emplace_back();
  procedure.id = result.id;
  procedure.state = result.state;
  WaitReason& reason = procedure.reasons.emplace_back();
  reason.kind = WaitReason::Kind::kFinished;
  reason.error = result.status;
  return answer;
}

Explanation::Procedure without_reasons(Execution& execution) {
  Explanation::Procedure procedure;
  procedure.id = execution.id;
  procedure.type = execution.name_of_type();
  procedure.state = execution.record.state;
  const std::uint32_t undoes = step_to_undo(execution);
  procedure.undo = undoes != 0;
  procedure.step = procedure.undo ? undoes : execution.record.step;
  const StepInfo* const step =
      execution.type != nullptr ? execution.type->find_step(procedure.step) : nullptr;
  if (step != nullptr) procedure.step_name = step->name;
  return procedure;
}

class Explainer {
 public:
  explicit Explainer(EngineCore& core) : core_(core) {}

  Result<Explanation> run(ProcedureId id) PV2_EXCLUDES(core_.state_mutex) {
    StateLock lock(core_);
    Execution* const execution = core_.find(id);
    if (execution != nullptr) {
      core_.flush();  // then the scheduler knows every procedure that is kQueued
      follow_all(*execution);
      return std::move(answer_);
    }
    const Completed* const completed = core_.state.submissions.completed.find(id);
    if (completed != nullptr) return ended(completed->result);
    const bool issued = core_.state.ids.was_issued(id);
    const Status not_loaded = core_.why_not_loaded();
    if (issued && !not_loaded.ok()) return not_loaded;
    return Status(
        StatusCode::kNotFound,
        name_of(id) + (issued ? " is not live: wait() says how it has ended, if that is still known"
                              : " does not exist and never did"));
  }

 private:
  void follow_all(Execution& first) PV2_REQUIRES(core_.state_mutex) {
    WaitReasons reasons(core_);
    wanted_.push_back(&first);
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      Explanation::Procedure procedure = without_reasons(*wanted_[i]);
      procedure.reasons = reasons.of(*wanted_[i]);
      follow(procedure.reasons);
      answer_.procedures.push_back(std::move(procedure));
    }
  }

  // A procedure that these reasons name is explained too, as far as there is room.
  void follow(const std::vector<WaitReason>& reasons) PV2_REQUIRES(core_.state_mutex) {
    for (const WaitReason& reason : reasons) {
      for (const ProcedureId id : reason.on) {
        Execution* const next = core_.find(id);
        if (next == nullptr || std::find(wanted_.begin(), wanted_.end(), next) != wanted_.end()) {
          continue;
        }
        wanted_.size() < kProceduresMax ? wanted_.push_back(next) : void(++answer_.left_out);
      }
    }
  }

  EngineCore& core_;
  Explanation answer_;
  std::vector<Execution*> wanted_;  // explained, or to be: in the order of the answer
};

}  // namespace

Result<Explanation> explain(EngineCore& core, ProcedureId id) {
  Result<Explanation> answer = Explainer(core).run(id);
  if (answer.ok()) find_cycles_and_causes(*answer);
  return answer;
}

}  // namespace pv2
