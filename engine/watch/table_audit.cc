// SPDX-License-Identifier: Apache-2.0
//
// One function per table. Where a table and its owner may differ for a moment, the reason stands
// beside the condition.

#include "watch/table_audit.h"

#include <cstdint>
#include <set>
#include <string>

#include "model/names.h"
#include "model/tree_work.h"
#include "submission/fingerprints.h"
#include "tree/domains.h"

namespace pv2 {
namespace {

void audit_timer(const AuditedState& audited, const Execution& member, AuditFindings& findings) {
  const bool has_timer = member.wait.timer_index != Wait::kNoTimer;
  if (has_timer && !audited.state.timers.has(member)) {
    findings.add_of(member, "its timer is not where it says, or not due when it says");
  }
  if (!audited.calm) return;
  if (has_timer && member.phase != Phase::kWaiting) {
    findings.add_of(member, "it has a timer, and does not wait");
  }
  // A failure that is on its way may have stopped the member when its deadline had passed.
  const bool waits_for_time = member.phase == Phase::kWaiting && member.record.deadline;
  if (waits_for_time && !has_timer && !is_about_to_fail(member)) {
    findings.add_of(member, "it waits for a deadline, and has no timer");
  }
}

// Every nonce belongs to a procedure that is live or has a result in memory.
void audit_owners(const EngineState& state, AuditFindings& findings) {
  state.submissions.nonces.for_each([&](ProcedureId id, const NonceUse& use) {
    const Completed* const completed = state.submissions.completed.find(id);
    const Execution* const live = state.live.find(id);
    const bool is_its = (completed != nullptr && &*completed->nonce_use == &use) ||
                        (live != nullptr && &*live->nonce_use == &use);
    if (is_its) return;
    findings.add("nonce " + std::to_string(use.nonce.group) + "/" +
                 std::to_string(use.nonce.value) + " is said to be that of " + name_of(id) +
                 ", which is not live, has no result in memory, or does not say so");
  });
}

void audit_owned(const EngineState& state, const Nonce& nonce, ProcedureId id,
                 AuditFindings& findings) {
  if (!nonce) return;
  const auto known = state.submissions.nonces.find(nonce);
  if (!known || known->id != id) {
    findings.add(name_of(id) + ": its nonce is not known as its own");
  }
}

// Whether the table of nonces need not know the nonce of `member`.
bool may_have_lost_nonce(const Execution& member) {
  const bool is_refused = member.record.state == ProcedureState::kInitializing &&
                          member.phase != Phase::kInserting;  // by a store that has failed
  // The result of a tree that has ended may be acknowledged and gone.
  const bool has_ended = member.root()->domain.is_over();
  return is_refused || has_ended;
}

}  // namespace

void audit_timers(const AuditedState& audited, AuditFindings& findings) {
  const EngineState& state = audited.state;
  std::size_t armed = 0;
  for (const Execution& member : state.live) {
    if (member.wait.timer_index != Wait::kNoTimer) ++armed;
    audit_timer(audited, member, findings);
  }
  if (armed != state.timers.size()) {
    findings.add("there are " + std::to_string(state.timers.size()) + " timers, and " +
                 std::to_string(armed) + " procedures have one");
  }
  if (!state.timers.is_in_order()) findings.add("the timers are not in order");
}

void audit_tree_works(const AuditedState& audited, const std::vector<const Execution*>& heads,
                      AuditFindings& findings) {
  std::set<const TreeWork*> known;
  for_each_work(audited.state, [&](const TreeWorks& works, const TreeWork& work) {
    known.insert(&work);
    if (works.root.domain.works() != &works) {
      findings.add_of(works.root, "it does not know its works");
    }
    if (work.head.domain.rare->work == &work && work.head.root() == &works.root) return;
    findings.add_of(work.head, "it does not know the work on its members");
  });
  for (const Execution* const head : heads) {
    if (head->domain.rare->work == nullptr || known.contains(head->domain.rare->work)) continue;
    findings.add_of(*head, "there is no such work on its members");
  }
  for (const auto& [id, leave] : audited.state.works.early_leaves) {
    if (!audited.is_live(leave.parent, id)) {
      findings.add("members leave early below procedure " + std::to_string(id.value) +
                   ", which is not live");
    } else if (leave.parent->is_head() && leave.parent->domain.is_over()) {
      findings.add_of(*leave.parent, "members leave early below it, though its domain is over");
    }
  }
}

void audit_nonces(const AuditedState& audited, AuditFindings& findings) {
  const EngineState& state = audited.state;
  audit_owners(state, findings);
  for (const Completed& completed : state.submissions.completed) {
    audit_owned(state, completed.nonce(), completed.result.id, findings);
  }
  std::string scratch;
  for (const Execution& member : state.live) {
    if (may_have_lost_nonce(member)) continue;
    audit_owned(state, member.nonce(), member.id, findings);
    const auto known = state.submissions.nonces.find(member.nonce());
    if (!known || is_stand_in(member)) continue;
    if (!fingerprints_of(member, scratch).match(known->fingerprint)) {
      findings.add_of(member, "it is not what its nonce was given to");
    }
  }
  if (state.submissions.nonces_on_disk_only != 0 && !state.submissions.store_knows_more_nonces) {
    findings.add(std::to_string(state.submissions.nonces_on_disk_only) +
                 " nonces are known to the store alone, and it is not asked");
  }
}

void audit_results(const AuditedState& audited, AuditFindings& findings) {
  const EngineState& state = audited.state;
  std::size_t bytes = 0;
  std::uint64_t rows = 0;
  for (const Completed& completed : state.submissions.completed) {
    const ProcedureId id = completed.result.id;
    bytes += CompletedResults::bytes_of(completed);
    rows += completed.bytes;
    if (state.submissions.completed.find(id) != &completed) {
      findings.add("the result of " + name_of(id) + " is not found by its id");
    }
    if (!state.ids.was_issued(id)) {
      findings.add(name_of(id) + " has a result, and its id has not been issued yet");
    }
    const Execution* const live = state.live.find(id);
    if (live != nullptr && !live->domain.is_over()) {
      findings.add_of(*live, "it has a result, and is live");
    }
  }
  if (bytes != state.submissions.completed.bytes()) {
    findings.add("results in memory are said to take " +
                 std::to_string(state.submissions.completed.bytes()) + " bytes, and take " +
                 std::to_string(bytes));
  }
  // A store also keeps results that are not in memory.
  const std::uint64_t kept = state.submissions.retention.bytes();
  if (!state.submissions.retention.counts()) return;
  if (audited.core.keeps_records ? kept < rows : kept != rows) {
    findings.add("results that are kept are said to take " + std::to_string(kept) +
                 " bytes, and those in memory take " + std::to_string(rows));
  }
}

void audit_rows_to_delete(const AuditedState& audited, AuditFindings& findings) {
  const EngineState& state = audited.state;
  for (const auto& [root, garbage] : state.garbage.pending) {
    if (garbage.chains == 0) {
      findings.add("rows of the tree of " + name_of(root) +
                   " are remembered as being deleted, and no deletion is under way");
    }
  }
  for (const auto& [root, rows] : state.garbage.dropped) {
    const Execution* const live = state.live.find(root);
    if (live == nullptr || live->domain.is_over()) {
      findings.add("rows of members of " + name_of(root) +
                   " wait for the end of its tree, which is over");
    }
    if (!state.garbage.pending.contains(root) || rows->root != root) {
      findings.add("rows of members of " + name_of(root) + " are not counted as its");
    }
  }
}

void audit_requests(const AuditedState& audited, AuditFindings& findings) {
  const EngineState& state = audited.state;
  for (const auto& [id, commit] : state.orders.aborting) {
    if (commit->to != id) {
      findings.add("an abort on the way is of another procedure than is said");
    }
    const Execution* const live = state.live.find(id);
    if (live != nullptr && !live->domain.abort_accepted) {
      findings.add_of(*live, "an abort of it is on the way, and it does not know");
    }
  }
  for (const auto& [id, commit] : state.submissions.acknowledging) {
    if (commit->id != id) {
      findings.add("an acknowledgement is of another procedure than is said");
    }
  }
}

void audit_ids_and_limits(const AuditedState& audited, AuditFindings& findings) {
  const EngineState& state = audited.state;
  const bool issued = state.ids.next() > state.ids.first();
  if (issued && state.ids.next() > state.ids.durable_watermark()) {
    findings.add("ids up to " + std::to_string(state.ids.next()) +
                 " were issued, and only those below " +
                 std::to_string(state.ids.durable_watermark()) + " may be");
  }
  for (const auto& [key, limit] : state.limits) {
    const bool of_type = key.cls == ResourceClass::kType;
    if (of_type && !audited.core.limits_types.load(std::memory_order_relaxed)) {
      findings.add(to_string(key) + " has a limit, and it is said that no type has one");
    }
  }
}

}  // namespace pv2
