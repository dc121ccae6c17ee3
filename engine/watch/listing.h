// SPDX-License-Identifier: Apache-2.0
//
// Listings: the live procedures, in pages. The state mutex is held for a bounded piece of a page at
// a time, and only to copy what the last durable records say. Fields are printed, which needs the
// user's class, after the mutex was released.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

// All are thread-safe. If fields are asked for, they call the user's constructors and fields() on
// the calling thread, with no lock held.

/// Procedures that match, with ids above `after`, at most `limit` of them.
[[nodiscard]] ProcedurePage list_procedures(EngineCore& core, const ListFilter& filter,
                                            ProcedureId after, std::size_t limit)
    PV2_EXCLUDES(core.state_mutex);
/// Of a live procedure, with its fields; kNotFound: it is not live.
[[nodiscard]] Result<ProcedureInfo> describe_procedure(EngineCore& core, ProcedureId id)
    PV2_EXCLUDES(core.state_mutex);
/// Of a procedure that is live, or a root that has ended and whose result is kept. kNotFound: there
/// never was such a procedure; kExpired: its record is gone. May read the store.
[[nodiscard]] Result<std::vector<HistoryEntry>> history_of(EngineCore& core, ProcedureId id)
    PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
