// SPDX-License-Identifier: Apache-2.0
//
// The row with the number of an order says whether it was carried out, with one exception: an abort
// that becomes durable after the end of its root is too late, and its rows are there for a moment
// longer, or until the next open. The sequence of the root's result tells the two apart.

#include "orders/audit_trail.h"

#include <pv2/store/procedure_store.h>

#include <utility>

#include "core/state_lock.h"
#include "model/names.h"
#include "records/audit_row.h"
#include "records/row_keys.h"

namespace pv2 {
namespace {

// Calls `visit` for each audit row that lies with `id`.
template <class Visit>
Status for_each_row(EngineCore& core, ProcedureId id, Visit visit) {
  return core.store.scan(Space::kProcedure, procedure_key(id, RowKind::kAudit),
                         [&](const StoredRow& row) {
                           auto audit = decode_audit(row.value);
                           if (!audit.ok()) return audit.status();
                           visit(row, *std::move(audit));
                           return Status();
                         });
}

// Calls `visit` for each order of the tree of `trail.root`. That is the tree of `id`, if a member
// that is not live has a row that says so.
template <class Visit>
Status for_each_order(EngineCore& core, AuditTrail& trail, Visit visit) {
  const ProcedureId asked = trail.root;
  if (!trail.live) {
    Status found = for_each_row(core, asked, [&](const StoredRow&, const AuditRow& audit) {
      if (audit.root && trail.root == asked) trail.root = audit.root;
    });
    if (!found.ok()) return found;
  }
  return for_each_row(core, trail.root, [&](const StoredRow& row, AuditRow audit) {
    if (!audit.root) visit(row, std::move(audit.entry));
  });
}

// Where to look for the orders about `id`.
AuditTrail place_to_look(EngineCore& core, ProcedureId id) {
  StateLock lock(core);
  const Execution* const found = core.find(id);
  return found == nullptr ? AuditTrail{.root = id}
                          : AuditTrail{.root = found->root->id, .live = true};
}

Result<bool> ended_before(EngineCore& core, ProcedureId root, CommitSequence order) {
  bool before = false;
  Status scanned = core.store.scan(Space::kResult, result_key(root), [&](const StoredRow& result) {
    before = result.sequence < order;
    return Status();
  });
  if (!scanned.ok()) return scanned;
  return before;
}

}  // namespace

Result<AuditTrail> read_audit(EngineCore& core, ProcedureId id) {
  AuditTrail trail = place_to_look(core, id);
  Status scanned = for_each_order(core, trail, [&](const StoredRow&, AuditEntry entry) {
    trail.entries.push_back(std::move(entry));
  });
  if (!scanned.ok()) return scanned.with_context("the audit of " + name_of(id));
  return trail;
}

Result<std::optional<AuditEntry>> find_order(EngineCore& core, ProcedureId id, const Nonce& nonce) {
  {
    StateLock lock(core);
    const Execution* const found = core.find(id);
    if (found != nullptr && !found->root->audited) return std::optional<AuditEntry>();
  }
  AuditTrail trail = place_to_look(core, id);
  std::optional<AuditEntry> order;
  CommitSequence sequence;
  Status scanned = for_each_order(core, trail, [&](const StoredRow& row, AuditEntry entry) {
    if (entry.nonce != nonce) return;
    order = std::move(entry);
    sequence = row.sequence;
  });
  const std::string what = "whether the order was carried out before";
  if (!scanned.ok()) return scanned.with_context(what);
  if (!order || order->verb != RepairVerb::kFailAndRollBack) return order;
  const auto late = ended_before(core, trail.root, sequence);
  if (!late.ok()) return late.status().with_context(what);
  return *late ? std::optional<AuditEntry>() : std::move(order);
}

}  // namespace pv2
