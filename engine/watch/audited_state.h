// SPDX-License-Identifier: Apache-2.0
//
// AuditedState: the state of an engine as an audit looks at it, with the facts that decide which
// contradictions are real and which only mean that something is on its way.

#pragma once

#include <algorithm>
#include <vector>

#include "core/engine_core.h"
#include "model/tree_work.h"

namespace pv2 {

/// The head of the domain around that of `head`; nullptr for a root. Not counted as a look, unlike
/// Execution::outer_domain().
[[nodiscard]] inline const Execution* domain_around(const Execution& head) {
  return head.is_root() ? nullptr : head.parent_execution()->head();
}

/// Calls `visit` with each TreeWork there is, and with the works of its tree.
template <class Visit>
void for_each_work(const EngineState& state, Visit visit) {
  for (const auto* const list : {&state.works.in_turn, &state.works.outside}) {
    for (const TreeWorks& works : *list) {
      for (const auto& work : works.queue) visit(works, *work);
    }
  }
}

/// Lives within one critical section of the state mutex.
struct AuditedState {
  explicit AuditedState(const EngineCore& of) PV2_REQUIRES(of.state_mutex)
      : core(of), state(of.state), calm(state.life.store_failure.ok() && !state.life.stopping) {
    for_each_work(state, [&](const TreeWorks& /*works*/, const TreeWork& work) {
      if (work.kind == TreeWork::Kind::kStop) told.push_back(&work.head);
    });
  }

  const EngineCore& core;
  const EngineState& state;
  const bool calm;                     ///< The store works, and the engine is not stopping.
  std::vector<const Execution*> told;  ///< Heads whose members are being told of a failure.

  [[nodiscard]] bool is_live(const Execution* execution, ProcedureId id) const {
    return state.live.find(id) == execution;
  }
  /// Whether the members of a domain around `member` are being told of a failure. Until this domain
  /// has been told, it goes on as if the failure had become durable a moment later.
  [[nodiscard]] bool may_not_know(const Execution& member) const {
    if (told.empty()) return false;
    for (const Execution* head = member.head(); head != nullptr; head = domain_around(*head)) {
      if (std::find(told.begin(), told.end(), head) != told.end()) return true;
    }
    return false;
  }
};

}  // namespace pv2
