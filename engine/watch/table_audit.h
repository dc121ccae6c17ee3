// SPDX-License-Identifier: Apache-2.0
//
// The audit of the tables that an engine keeps in addition to its live procedures: the owner of
// every entry knows the entry, and every entry that an owner knows exists.

#pragma once

#include <vector>

#include "watch/audit_findings.h"
#include "watch/audited_state.h"

namespace pv2 {

void audit_timers(const AuditedState& audited, AuditFindings& findings);
/// `heads` are those of all live domains; while the engine is not calm they are not looked at.
void audit_tree_works(const AuditedState& audited, const std::vector<const Execution*>& heads,
                      AuditFindings& findings);
void audit_nonces(const AuditedState& audited, AuditFindings& findings);
void audit_results(const AuditedState& audited, AuditFindings& findings);
void audit_rows_to_delete(const AuditedState& audited, AuditFindings& findings);
/// Audits the aborts and acknowledgements that are on their way.
void audit_requests(const AuditedState& audited, AuditFindings& findings);
void audit_ids_and_limits(const AuditedState& audited, AuditFindings& findings);

}  // namespace pv2
