// SPDX-License-Identifier: Apache-2.0
//
// Read audit_state(): one pass over the live procedures, in which each is compared with its
// neighbours and counted for its head and its root; then the counts; then the tables.

#include "watch/state_audit.h"

#include <cstdint>
#include <utility>

#include "model/names.h"
#include "watch/audit_counts.h"
#include "watch/audit_findings.h"
#include "watch/audited_state.h"
#include "watch/member_audit.h"
#include "watch/table_audit.h"

namespace pv2 {

std::vector<std::string> audit_state(EngineCore& core) {
  const Looks::Uncounted uncounted;
  core.flush();  // the scheduler learns what was settled in this section
  const AuditedState audited(core);
  AuditCounts counts;
  AuditFindings findings;

  MemberAudit members(audited, counts, findings);
  for (const Execution& execution : audited.state.live) members.look_at(execution);

  counts.compare_children(findings);
  if (audited.calm) counts.compare(audited.state, findings);

  audit_timers(audited, findings);
  audit_tree_works(audited, counts.heads, findings);
  audit_nonces(audited, findings);
  audit_results(audited, findings);
  audit_rows_to_delete(audited, findings);
  audit_requests(audited, findings);
  audit_ids_and_limits(audited, findings);
  return std::move(findings).take();
}

#ifdef PV2_AUDITS_ITSELF
void audit_now_and_then(EngineCore& core) {
  // An audit every kEvery sections costs less than the rest of a debug build does. The maxima bound
  // the time of one audit.
  constexpr std::uint64_t kEvery = 4096;
  constexpr std::size_t kLiveMax = 256;
  constexpr std::size_t kResultsMax = 4096;
  thread_local std::uint64_t sections = 0;
  if (++sections % kEvery != 0 || !core.loading.is_complete()) return;  // trees are not whole yet
  if (core.state.live.size() > kLiveMax || core.state.submissions.completed.size() > kResultsMax)
    return;
  core.widen();
  const std::vector<std::string> contradictions = audit_state(core);
  PV2_ASSERT(contradictions.empty(), contradictions.front().c_str());
}
#endif

}  // namespace pv2
