// SPDX-License-Identifier: Apache-2.0
//
// The rows of an ended root are not read if open() could not read them: they are reported as set
// aside instead.

#include "submission/ended_procedure.h"

#include <string>

#include "core/state_lock.h"
#include "model/names.h"
#include "submission/stored_result.h"

namespace pv2 {

Status why_set_aside(const EngineCore& core, ProcedureId id) {
  const auto unreadable = core.state.unreadable.find(id);
  if (unreadable == core.state.unreadable.end()) return Status();
  return unreadable->second.why.with_context(name_of(id) + " was set aside when " +
                                             core.store_name + " was opened");
}

Status never_issued(ProcedureId id) {
  return Status(StatusCode::kNotFound, "there is no " + name_of(id) + " and there never was");
}

Status forgotten(ProcedureId id) {
  return Status(StatusCode::kExpired,
                name_of(id) + " has ended and its result was acknowledged or forgotten");
}

Result<Completed> read_ended(EngineCore& core, ProcedureId id) {
  {
    StateLock lock(core, Width::kNarrow);
    if (Status aside = why_set_aside(core, id); !aside.ok()) return aside;
  }
  const auto rows = StoredResult::read(core.store, id);
  if (!rows.ok()) return rows.status();
  if (!*rows) return forgotten(id);
  auto stored = (*rows)->decode(id);
  if (!stored.ok()) return stored.status();
  if (!*stored) return forgotten(id);
  return **std::move(stored);
}

}  // namespace pv2
