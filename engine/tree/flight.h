// SPDX-License-Identifier: Apache-2.0
//
// Flight: a member is in flight from being taken by a worker until its record is published. The
// rollback of a domain begins when nobody of it is in flight, so no step runs beside an undo.

#pragma once

#include "core/engine_core.h"

namespace pv2 {

/// A worker has taken it, or its record is on the way.
void enter_flight(Execution& member);

/// That is over. In a domain that has failed the last one starts the rollback.
void left_flight(EngineCore& core, Execution& member, Effects& effects)
    PV2_REQUIRES(core.state_mutex);

/// Whether a step that a worker has taken may still begin, as far as its tree goes: nothing around
/// it has failed, or it is its turn to be undone.
[[nodiscard]] bool may_begin(Execution& member);

/// If so, the turn of `member`, which a worker had taken, has not begun.
void put_turn_back(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex);

/// A member that a worker has taken does not begin, as its tree has failed; left_flight() follows.
void drop_from_flight(EngineCore& core, Execution& member) PV2_REQUIRES(core.state_mutex);

}  // namespace pv2
