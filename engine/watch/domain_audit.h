// SPDX-License-Identifier: Apache-2.0
//
// The audit of failure domains: what each head knows of a failure, and of the rollback that follows
// from it.

#pragma once

#include "watch/audit_counts.h"
#include "watch/audit_findings.h"
#include "watch/audited_state.h"

namespace pv2 {

/// Counts `member` for its domain. For a head, compares its domain with the domain around it. For
/// any other member, reports domain state that it should not have. Called while the engine is calm.
void audit_domain(const AuditedState& audited, const Execution& member, AuditCounts& counts,
                  AuditFindings& findings);

}  // namespace pv2
