// SPDX-License-Identifier: Apache-2.0
//
// Flight: a member is in flight from being taken by a worker until its record is published, and as
// long as it has offloaded work outstanding. The rollback of a domain begins when no member of it
// is in flight, so no step of the domain runs at the same time as an undo.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// Counts `member` as in flight: a worker has taken it, its record is on the way, or its first
/// piece of work begins. A member may be counted for two of these at once. Called under the state
/// mutex.
void enter_flight(Execution& member);

/// Ends one enter_flight(). In a failed domain the last member to leave flight starts the rollback,
/// or the next turns of one that is planned.
void left_flight(EngineCore& core, Execution& member, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Whether the step or undo for which a worker took `member` may still begin: no domain around it
/// is stopped; or it is its turn to be undone, and no order is to end the domain. Called under the
/// state mutex.
[[nodiscard]] bool may_begin(Execution& member);

/// If an order is to end the stopped domain around `member`: puts the turn of `member`, which a
/// worker had taken and not begun, back into the plan. Else does nothing.
void put_turn_back(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex);

/// `member`, which a worker has taken, does not begin, because a domain around it is stopped. The
/// caller calls left_flight() afterwards.
void drop_from_flight(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
