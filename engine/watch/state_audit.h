// SPDX-License-Identifier: Apache-2.0
//
// StateAudit: goes through everything that the state mutex guards and reports, in words, what
// contradicts something else. The engine keeps many facts twice, as a count, a link back or a flag,
// so that it need not look at a whole tree each time. The audit works out each of these facts again
// and compares. It changes nothing and decides nothing. The simulation runs it after each move, and
// a debug build now and then (PV2_AUDITS_ITSELF, set by CMake).
//
// Facts that may differ between two critical sections are not compared; the code says why, at each
// of them. After the store has failed, or while the engine stops, what was on the way is dropped as
// it is: then only the tables and the links of the trees are looked at.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/engine_core.h"

namespace pv2 {

/// The first twenty contradictions; empty: there are none. Looks at every live procedure and every
/// result in memory. These looks are not counted (Looks): they are not the engine's work.
[[nodiscard]] std::vector<std::string> audit_state(EngineCore& core) PV2_REQUIRES(core.state_mutex);

/// Called at the end of each section that publishes. In a debug build every 4096th call on a thread
/// audits the state, if it is small, and asserts that nothing contradicts itself. In other builds
/// it does nothing.
#ifdef PV2_AUDITS_ITSELF
void audit_now_and_then(EngineCore& core) PV2_REQUIRES(core.state_mutex);
#else
inline void audit_now_and_then(EngineCore& /*core*/) {}
#endif

/// The audit of an executor. For tests.
struct StateAudit {
  /// As audit_state(), under the executor's state mutex.
  [[nodiscard]] static std::vector<std::string> of(const ProcedureExecutor& executor);
  /// Calls `change` under the state mutex, so that a test can spoil a fact and show that the audit
  /// notices. The test has to repair it afterwards.
  static void change(const ProcedureExecutor& executor,
                     const std::function<void(EngineState&)>& change);
};

}  // namespace pv2
