// SPDX-License-Identifier: Apache-2.0
//
// Read audit_domain() first, at the end of this file.

#include "watch/domain_audit.h"

#include <vector>

#include "model/rollback_plan.h"
#include "model/tree_work.h"
#include "steps/offloads.h"
#include "tree/domains.h"
#include "tree/members_at_work.h"

namespace pv2 {
namespace {

void count_flight(const Execution& member, AuditCounts& counts) {
  if (member.root()->domain.is_over()) return;  // the last record of a root is not counted down
  std::size_t flight = 0;
  if (member.phase == Phase::kInFlight || member.phase == Phase::kDropping) ++flight;
  if (has_work(member)) ++flight;
  counts.by_head[member.head()].flight += flight;
  const Execution* const failing = member.head()->domain.failing();
  if (failing != nullptr) counts.by_head[failing].inside += flight;
}

void audit_no_head(const Execution& member, AuditFindings& findings) {
  const Domain& domain = member.domain;
  if (domain.rare->work != nullptr || domain.is_stopped() || domain.is_over() ||
      domain.rare->rollback) {
    findings.add_of(member, "it is the head of no domain, and has the state of one");
  }
}

// The widest failed domain around `head`, including its own.
const Execution* widest_failed(const Execution& head) {
  const Execution* const around = domain_around(head);
  const Execution* const outer = around != nullptr ? around->domain.failing() : nullptr;
  if (outer != nullptr) return outer;
  return head.domain.is_stopped() ? &head : nullptr;
}

void audit_failure(const AuditedState& audited, const Execution& head, AuditFindings& findings) {
  const Domain& domain = head.domain;
  if (domain.failing() != widest_failed(head) && !domain.is_over() && !audited.may_not_know(head)) {
    findings.add_of(head, domain.failing() == nullptr
                              ? "it does not know what around it has failed"
                              : "it takes another domain than the widest one that has failed for "
                                "that");
  }
  if (domain.failing() != nullptr && domain.failing()->domain.state == DomainState::kForward) {
    findings.add_of(head, "it knows of a failure that is none");
  }
  if (domain.rare->rollback && domain.state == DomainState::kForward) {
    findings.add_of(head, "it is undone, and has not failed");
  }
}

void audit_end(const Execution& head, AuditFindings& findings) {
  const Domain& domain = head.domain;
  const bool ends = domain.rare->work != nullptr && domain.rare->work->kind == TreeWork::Kind::kEnd;
  if (domain.is_over() && head.is_root() && !ends) {
    findings.add_of(head, "it is over, and does not leave");
  }
  if (head.inbox && head.inbox->abort() != nullptr && !domain.is_stopped() && !domain.is_over()) {
    findings.add_of(head, "it was aborted, and goes on");
  }
}

// For a domain that is being undone, or will be when none of its members is in flight, and that no
// TreeWork is visiting.
void audit_rollback(const Execution& head, AuditCounts& counts, AuditFindings& findings) {
  const Domain& domain = head.domain;
  const bool stands =
      domain.rare->in_flight_inside == 0 && !domain.is_parked() && !domain.makes_way();
  if (!domain.rare->rollback) {
    if (stands) {
      findings.add_of(head, "it has failed, no member is in flight, and no rollback was planned");
    }
    return;
  }
  std::size_t turns = 0;
  domain.rare->rollback->for_each([&](const UndoTurn& turn) {
    ++turns;
    ++counts.turns[turn.execution];
    if (turn.execution->head()->domain.failing() != &head) {
      findings.add_of(*turn.execution, "it is undone with another domain than its own");
    }
  });
  findings.compare(head, "the number of turns that are left to undo", domain.rare->rollback->left(),
                   turns);
  const std::vector<Execution*> begun = domain.rare->rollback->begun();
  for (const Execution* const member : begun) {
    // The record that gives locks back in a last turn is on its way.
    const bool gives_back =
        domain.rare->rollback->newest_of(*member)->kind == UndoTurn::Kind::kLast;
    if (gives_back ? member->phase != Phase::kInFlight : !member->has_turn()) {
      findings.add_of(*member, "its turn has begun, and nothing happens in it");
    }
  }
  if (turns != 0 && begun.empty() && stands) {
    findings.add_of(head, "turns of its undoing are left, and none has begun");
  }
  counts.planned.push_back(&head);
}

}  // namespace

void audit_domain(const AuditedState& audited, const Execution& member, AuditCounts& counts,
                  AuditFindings& findings) {
  count_flight(member, counts);
  if (!member.is_head()) return audit_no_head(member, findings);
  counts.heads.push_back(&member);
  audit_failure(audited, member, findings);
  audit_end(member, findings);
  const Domain& domain = member.domain;
  if (domain.failing() == &member && domain.rare->work == nullptr && !domain.is_over() &&
      !member.is_quarantined()) {
    audit_rollback(member, counts, findings);
  }
}

}  // namespace pv2
