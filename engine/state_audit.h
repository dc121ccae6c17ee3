// SPDX-License-Identifier: Apache-2.0
//
// StateAudit: goes through everything that the state mutex guards and says, in words, what of it
// contradicts something else. The engine keeps many facts twice, as a count, a link back or a flag,
// so that it need not look at a whole tree each time. The audit works each of these facts out again
// and compares. It changes nothing and decides nothing. The simulation asks after each move, and a
// debug build every so often while it runs (PV2_AUDITS_ITSELF, set by CMake).
//
// What may differ between two critical sections is left out, as precisely as that can be said; the
// reasons are beside the code. After the store has failed, or while the engine stops, what was on
// the way is let go as it stands: then only the tables and the links of the trees are looked at.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine_core.h"

namespace pv2 {

/// What contradicts itself, at most some twenty of it; empty: nothing does. Looks at every live
/// procedure and every result in memory, and is not counted (Looks): it is not the engine's work.
[[nodiscard]] std::vector<std::string> audit_state(EngineCore& core) PV2_REQUIRES(core.state_mutex);

/// Called at the end of each section that publishes. In a debug build every 4096th of them, if few
/// procedures live, asserts that nothing contradicts itself; else does nothing.
#ifdef PV2_AUDITS_ITSELF
void audit_now_and_then(EngineCore& core) PV2_REQUIRES(core.state_mutex);
#else
inline void audit_now_and_then(EngineCore& /*core*/) {}
#endif

/// The same of an executor. For tests.
struct StateAudit {
  [[nodiscard]] static std::vector<std::string> of(const ProcedureExecutor& executor);
  /// `change` is called under the state mutex: how a test shows that what it spoils is noticed. It
  /// has to put right what it has spoiled.
  static void change(const ProcedureExecutor& executor,
                     const std::function<void(EngineState&)>& change);
};

}  // namespace pv2
