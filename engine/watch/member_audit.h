// SPDX-License-Identifier: Apache-2.0
//
// MemberAudit: compares each live procedure with its neighbours in the tree and with what its phase
// means, and counts it for its head and its root.

#pragma once

#include "watch/audit_counts.h"
#include "watch/audit_findings.h"
#include "watch/audited_state.h"

namespace pv2 {

/// Lives within one critical section of the state mutex.
class MemberAudit {
 public:
  MemberAudit(const AuditedState& audited, AuditCounts& counts, AuditFindings& findings)
      : audited_(audited), counts_(counts), findings_(findings) {}

  /// `member` is in the table of live procedures.
  void look_at(const Execution& member);

 private:
  void look_at_new(const Execution& member);
  void look_at_place_in_tree(const Execution& member);
  void look_at_children(const Execution& parent);
  void look_at_child(const Execution& parent, const Execution& child, const Execution* before);
  void look_at_unfinished(const Execution& parent, std::size_t unfinished);
  void look_at_marks(Execution& member);
  void look_at_standing(const Execution& member);
  void look_at_no_return(Execution& member);
  void look_at_phase(const Execution& member);
  void look_at_forward(const Execution& member);
  void look_at_work(const Execution& member);
  void look_at_inbox(const Execution& member);

  const AuditedState& audited_;
  AuditCounts& counts_;
  AuditFindings& findings_;
};

}  // namespace pv2
