// SPDX-License-Identifier: Apache-2.0
//
// Bypass: the order that ends a domain while steps of it may be under way. It is carried out when
// no member of the domain is in the middle of one. Until then it is a WaitingOrder: it waits in
// memory, and no step of the domain begins. A crash in the meantime leaves no trace of it.

#pragma once

#include "core/engine_core.h"
#include "orders/repair_plan.h"

namespace pv2 {

/// Carries out `order`, or has it wait. The reply is kUnavailable when too many orders wait
/// already.
void bypass(EngineCore& core, const Order& order, AuditEntry entry, Reply<Status> reply,
            Effects& effects) PV2_REQUIRES(core.state_mutex);

/// Carries out each WaitingOrder that waits for no member any more, or answers why it cannot be
/// carried out.
void carry_out_waiting_orders(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex);
/// Answers all of them with `why`; none is carried out.
void refuse_waiting_orders(EngineCore& core, const Status& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Whether `member` is in the middle of something that is not to be cut off. The scheduler has been
/// told of all members that are queued (EngineCore::flush).
[[nodiscard]] bool is_busy(EngineCore& core, const Execution& member)
    PV2_REQUIRES(core.state_mutex);
/// Of a domain that is stopped: a member in the middle of something, for which an order to end the
/// domain waits; or nullptr. A member with offloaded work is none: the order is recorded beside
/// that, and the end waits for it.
[[nodiscard]] const Execution* busy_member(EngineCore& core, Execution& head)
    PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
