// SPDX-License-Identifier: Apache-2.0
//
// Each function compares the counts of one owner: a domain, a tree, a rollback, the engine.

#include "watch/audit_counts.h"

#include <algorithm>
#include <string>

namespace pv2 {
AuditCounts::OfHead AuditCounts::of(const Execution& head) const {
  const auto at = by_head.find(&head);
  return at != by_head.end() ? at->second : OfHead();
}

void AuditCounts::compare_children(AuditFindings& findings) const {
  if (children_linked == children_live) return;
  findings.add("the lists of children have " + std::to_string(children_linked) + " members, and " +
               std::to_string(children_live) + " children are live");
}

void AuditCounts::compare(const EngineState& state, AuditFindings& findings) const {
  compare_domains(findings);
  compare_trees(findings);
  compare_rollbacks(state, findings);
  compare_engine(state, findings);
}

void AuditCounts::compare_domains(AuditFindings& findings) const {
  for (const Execution* const head : heads) {
    if (head->root()->domain.is_over()) continue;
    const OfHead counted = of(*head);
    findings.compare(*head, "the number in flight of its domain", head->domain.in_flight,
                     counted.flight);
    findings.compare(*head, "the number in flight of what failed with it",
                     head->domain.rare->in_flight_inside, counted.inside);
  }
}

void AuditCounts::compare_trees(AuditFindings& findings) const {
  for (const auto& [member, counted] : beyond_below) {
    findings.compare(*member, "the number of members below it past their point of no return",
                     member->children().beyond, counted);
  }
  for (const Execution* const head : heads) {
    if (!head->is_root()) continue;
    const Domain& domain = head->domain;
    const OfHead counted = of(*head);
    findings.compare(*head, "the number of its members past their point of no return",
                     domain.rare->beyond, counted.beyond);
    findings.compare(*head, "the number of its members that have begun to pass it",
                     domain.rare->begun, counted.begun);
    findings.compare(*head, "the number of its members that are parked, or heads of what is",
                     domain.rare->standing ? domain.rare->standing->size() : 0, counted.standing);
    findings.compare(*head, "the number of its members with offloaded work",
                     domain.rare->at_work ? domain.rare->at_work->size() : 0, counted.at_work);
  }
}

void AuditCounts::compare_rollbacks(const EngineState& state, AuditFindings& findings) const {
  for (const Execution* const head : planned) {
    findings.compare(*head, "the number of undos that are parked", head->domain.rare->parked_undos,
                     of(*head).parked_undos);
  }
  for (const Execution* const head : ordered) {
    findings.compare(*head, "the number of members whose work the order that ends it waits for",
                     head->work()->last_order_awaits, of(*head).awaited);
  }
  if (planned.empty()) return;
  for (const Execution& member : state.live) {
    const Execution* const failing = member.head()->domain.failing();
    if (failing == nullptr || member.record.state != ProcedureState::kFailed) continue;
    if (member.head()->domain.is_over() || member.record.reported) continue;
    if (std::find(planned.begin(), planned.end(), failing) == planned.end()) continue;
    const auto counted = turns.find(&member);
    findings.compare(member, "the number of its steps that are left to undo", member.turn().left,
                     counted != turns.end() ? counted->second : 0);
  }
}

void AuditCounts::compare_engine(const EngineState& state, AuditFindings& findings) const {
  // A member that spawns is in flight until its children are live.
  if (in_flight == 0 && state.spawning != 0) {
    findings.add(std::to_string(state.spawning) +
                 " children are about to be live, and no step runs");
  }
}

}  // namespace pv2
