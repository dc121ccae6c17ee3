// SPDX-License-Identifier: Apache-2.0
//
// Bypass: the order that ends a domain, even while some of its steps are running. It is carried out
// when no member of the domain is in the middle of a step. Until then it is a WaitingOrder: it
// waits in memory, and no step of the domain begins. A crash in the meantime leaves no trace of it.

#pragma once

#include "core/engine_core.h"
#include "orders/repair_plan.h"

namespace pv2 {

/// Carries out `order`, or lets it wait. The reply is kUnavailable if too many orders wait already.
void bypass(EngineCore& core, const Order& order, AuditEntry entry, Reply<Status> reply,
            Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Carries out each WaitingOrder that no longer waits for a member, or answers why it cannot be
/// carried out.
void carry_out_waiting_orders(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex);
/// Refuses all waiting orders with `why`; none is carried out.
void refuse_waiting_orders(EngineCore& core, const Status& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Whether `member` is in the middle of a step or a commit that must not be cut off. The caller has
/// called EngineCore::flush(), so the scheduler knows all queued members.
[[nodiscard]] bool is_busy(EngineCore& core, const Execution& member)
    PV2_REQUIRES(core.state_mutex);
/// For a stopped domain: a member in the middle of a step, for which an order to end the domain
/// waits; or nullptr. Offloaded work does not make a member busy: the order is recorded while the
/// work runs, and the end of the domain waits for the work.
[[nodiscard]] const Execution* busy_member(EngineCore& core, Execution& head)
    PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
