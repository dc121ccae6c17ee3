// SPDX-License-Identifier: Apache-2.0
//
// Listings: what there is, in pages. The state mutex is held for a bounded piece of a page at a
// time, and only to copy what the last durable records say; filters that need the user's class, and
// the printing of fields, come after it was released.

#pragma once

#include "engine_core.h"

namespace pv2 {

/// Thread-safe, all of them. They call the user's constructors and fields() on the calling thread,
/// with no lock held, when fields are asked for.
[[nodiscard]] ProcedurePage list_procedures(EngineCore& core, const ListFilter& filter,
                                            ProcedureId after, std::size_t limit)
    PV2_EXCLUDES(core.state_mutex);
[[nodiscard]] Result<ProcedureInfo> describe_procedure(EngineCore& core, ProcedureId id)
    PV2_EXCLUDES(core.state_mutex);
[[nodiscard]] Result<std::vector<HistoryEntry>> history_of(EngineCore& core, ProcedureId id)
    PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
