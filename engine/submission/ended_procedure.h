// SPDX-License-Identifier: Apache-2.0
//
// What is known of a procedure that is not live, when memory does not have its result. The store
// has it, or cannot read it, or it is forgotten, or there never was such a procedure.

#pragma once

#include "core/completed_results.h"
#include "core/engine_core.h"

namespace pv2 {

/// kNotFound: no procedure was ever given this id.
[[nodiscard]] Status never_issued(ProcedureId id);
/// kExpired: the procedure has ended, and nothing is left of it.
[[nodiscard]] Status forgotten(ProcedureId id);

/// OK, unless open() has set aside the record of `id`. A root that is set aside may have a stand-in
/// among the live procedures, for the members that are left of its tree; so ask this first.
[[nodiscard]] Status why_set_aside(const EngineCore& core, ProcedureId id)
    PV2_REQUIRES(core.state_mutex);

/// What the store says of a root that has ended; kExpired if it has nothing, kCorruption if it
/// cannot be read or was set aside by open(). May read the disk. Thread-safe.
[[nodiscard]] Result<Completed> read_ended(EngineCore& core, ProcedureId id)
    PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
