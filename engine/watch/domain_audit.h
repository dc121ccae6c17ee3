// SPDX-License-Identifier: Apache-2.0
//
// The audit of failure domains: what each head knows of a failure, and of the rollback that follows
// from it.

#pragma once

#include "watch/audit_counts.h"
#include "watch/audit_findings.h"
#include "watch/audited_state.h"

namespace pv2 {

/// Counts `member` for its domain. If it is the head of one, compares the state of that domain with
/// that of the domain around it; else says what state of a domain it has. While the engine is calm.
void audit_domain(const AuditedState& audited, const Execution& member, AuditCounts& counts,
                  AuditFindings& findings);

}  // namespace pv2
