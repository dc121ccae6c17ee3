// SPDX-License-Identifier: Apache-2.0
//
// Repair record: turns an order into one batch: a state record like that of a step, and the audit
// row. From then on the batch is published like any record, so no order can be half done. The
// procedure that the record is about counts as in flight until then.

#pragma once

#include "core/engine_core.h"
#include "orders/repair_plan.h"

namespace pv2 {

/// Commits `order`, planned in the same section, with its audit entry. `entry` says who ordered it
/// and why; the other fields are filled in here. The reply is given when the batch is durable and
/// published, or when the store has failed.
void commit_order(EngineCore& core, const Order& order, AuditEntry entry, Reply<Status> reply,
                  Effects& effects) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
