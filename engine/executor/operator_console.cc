// SPDX-License-Identifier: Apache-2.0
//
// The operator's verbs: each is one call into the part that does it.

#include "pv2/engine/operator_console.h"

#include <memory>
#include <utility>

#include "executor/blocking_call.h"
#include "executor/engine.h"
#include "model/check_limits.h"
#include "orders/limits.h"
#include "pv2/engine/executor_options.h"
#include "pv2/engine/procedure_registry.h"

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

Result<Ordered> OperatorConsole::order_once(const Nonce& nonce, ProcedureId id, RepairVerb verb,
                                            RepairNote note) const {
  return block<Result<Ordered>>(engine_->core, to_string(verb), [&](Reply<Result<Ordered>> reply) {
    engine_->repairs.repair_once(nonce, id, verb, std::move(note), std::move(reply));
  });
}

OrderTicket OperatorConsole::order_once(const Nonce& nonce, ProcedureId id, RepairVerb verb,
                                        RepairNote note, OrderedCallback done) const {
  return engine_->repairs.repair_once(nonce, id, verb, std::move(note), {std::move(done)});
}

bool OperatorConsole::withdraw(const OrderTicket& ticket) const {
  return engine_->repairs.withdraw(ticket);
}

bool OperatorConsole::keeps_nonces() const noexcept { return engine_->core.keeps_records; }

Result<std::vector<std::string>> OperatorConsole::preview(ProcedureId id, RepairVerb verb) const {
  block_until_loaded(engine_->core);
  return engine_->repairs.preview(id, verb);
}

Result<std::vector<AuditEntry>> OperatorConsole::audit(ProcedureId id) const {
  block_until_loaded(engine_->core);
  return engine_->repairs.audit(id);
}

Status OperatorConsole::set_limit(const ResourceKey& key,
                                  std::optional<std::uint32_t> limit) const {
  return block<Status>(engine_->core, "set_limit()", [&](Reply<Status> reply) {
    engine_->core.loading.wait();
    pv2::set_limit(engine_->core, engine_->publisher, key, limit, std::move(reply));
  });
}

Status OperatorConsole::set_type_limit(std::string_view type,
                                       std::optional<std::uint32_t> limit) const {
  // The program may no longer have a type whose limit ends.
  if (limit && engine_->core.options.registry.find(type) == nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  "procedure type '" + shortened(type) + "' is not registered");
  }
  return set_limit({ResourceClass::kType, std::string(type)}, limit);
}

}  // namespace pv2
