// SPDX-License-Identifier: Apache-2.0
//
// Repair record: an order becomes one batch, namely a state record as a step would have written it,
// and the audit row. From then on it is published like any record, so no order can be half done.
// The procedure whose record it is counts as in flight until then.

#pragma once

#include "core/engine_core.h"
#include "orders/repair_plan.h"

namespace pv2 {

/// Commits `order`, which the section that calls this has planned, with its audit entry. `entry`
/// says who ordered it and why; the rest is filled in here. The reply is given when the batch is
/// durable and published, or when the store has failed.
void commit_order(EngineCore& core, const Order& order, AuditEntry entry, Reply<Status> reply,
                  Effects& effects) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
