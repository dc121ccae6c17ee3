// SPDX-License-Identifier: Apache-2.0
//
// The operator's verbs: each is one call into the part that does it.

#include "pv2/engine/operator_console.h"

#include <memory>
#include <utility>

#include "core/effects.h"
#include "core/state_lock.h"
#include "executor/blocking_call.h"
#include "executor/engine.h"
#include "model/check_limits.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/limits.h"
#include "pv2/engine/procedure_registry.h"
#include "records/limit_row.h"
#include "records/row_keys.h"

namespace pv2 {

Status OperatorConsole::order(ProcedureId id, RepairVerb verb, RepairNote note) const {
  return block<Status>(engine_->core, to_string(verb), [&](Reply<Status> reply) {
    engine_->repairs.repair(id, verb, std::move(note), std::move(reply));
  });
}

void OperatorConsole::order(ProcedureId id, RepairVerb verb, RepairNote note,
                            StatusCallback done) const {
  engine_->repairs.repair(id, verb, std::move(note), {std::move(done)});
}

Result<std::vector<std::string>> OperatorConsole::preview(ProcedureId id, RepairVerb verb) const {
  return engine_->repairs.preview(id, verb);
}

Result<std::vector<AuditEntry>> OperatorConsole::audit(ProcedureId id) const {
  return engine_->repairs.audit(id);
}

Status OperatorConsole::set_limit(const ResourceKey& key,
                                  std::optional<std::uint32_t> limit) const {
  if (EngineThread::belongs_to(&engine_->core)) return on_engine_thread("set_limit()");
  if (Status status = check_key(key); !status.ok()) return status.with_context("set_limit()");
  const auto latch = std::make_shared<Latch<Status>>();
  auto commit = std::make_unique<LimitCommit>();
  commit->key = key;
  commit->limit = limit;
  commit->reply = {[latch](const Status& status) { latch->set(status); }, ReplyOn::kHere};
  if (limit) {
    std::string row;
    encode_limit(*limit, row);
    commit->batch.put(Space::kEngine, limit_key(key), row);
  } else {
    commit->batch.erase(Space::kEngine, limit_key(key));
  }
  Effects effects;
  {
    StateLock lock(engine_->core);
    if (Status status = engine_->core.unavailable(); !status.ok()) return status;
    const auto& limited = engine_->core.state.limits;
    if (limit && limited.size() >= limits::kLimitedKeys && !limited.contains(key)) {
      return Status(StatusCode::kResourceExhausted,
                    std::to_string(limited.size()) +
                        " keys and types have a limit, and more are "
                        "not kept; end one with nullopt first");
    }
    effects.commits.push_back(*commit.release());
  }
  engine_->publisher.perform(effects);
  return await(engine_->core, *latch);
}

Status OperatorConsole::set_type_limit(std::string_view type,
                                       std::optional<std::uint32_t> limit) const {
  if (engine_->core.options.registry.find(type) == nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  "procedure type '" + shortened(type) + "' is not registered");
  }
  return set_limit({ResourceClass::kType, std::string(type)}, limit);
}

}  // namespace pv2
