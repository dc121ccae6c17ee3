// SPDX-License-Identifier: Apache-2.0
//
// Deadlocks: what the engine does about procedures that wait for each other in a circle. The
// scheduler finds and names them; here the host's policy is applied. It runs on the pool, so it is
// never under a lock of whoever closed the circle.

#pragma once

#include "engine_core.h"
#include "publisher.h"

namespace pv2 {

/// Reports every cycle that was closed since the last call and, if the policy says so, fails the
/// youngest tree in it that can be undone: its waiting member gets a FAILED record that names the
/// cycle, and an ordinary rollback follows. If all trees in it are being undone already, the
/// youngest is parked. A cycle that has opened meanwhile is left alone.
void resolve_deadlocks(EngineCore& core, Publisher& publisher) PV2_EXCLUDES(core.state_mutex);

}  // namespace pv2
