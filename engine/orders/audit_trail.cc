// SPDX-License-Identifier: Apache-2.0
//
// The row with the number of an order says whether it was carried out, with one exception: an abort
// that becomes durable after the end of its root is too late, and its rows are there for a moment
// longer, or until the next open. The sequence of the row that ends the root tells the two apart.
// Where no row does (the result was acknowledged), nothing tells.
//
// An acknowledgement deletes the result first, or together with the orders. So as long as there is
// a result, all orders of its tree are there.

#include "orders/audit_trail.h"

#include <pv2/store/procedure_store.h>

#include <utility>

#include "core/state_lock.h"
#include "model/names.h"
#include "records/audit_row.h"
#include "records/row_keys.h"
#include "records/state_codec.h"
#include "submission/ended_procedure.h"

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
                          : AuditTrail{.root = found->root()->id, .live = true};
}

struct Row {
  std::string value;
  CommitSequence sequence;
};

// A scan is needed for the sequence. If it found nothing it would pass over all rows that were
// deleted, so get() looks first.
Result<std::optional<Row>> read_row(ProcedureStore& store, Space space, std::string_view key) {
  std::optional<Row> row;
  const auto there = store.get(space, key);
  if (!there.ok()) return there.status();
  if (!*there) return row;
  Status scanned = store.scan(space, key, [&](const StoredRow& found) {
    row = Row{.value = std::string(found.value), .sequence = found.sequence};
    return Status();
  });
  if (!scanned.ok()) return scanned;
  return row;
}

// What the rows of a root say about its end.
struct End {
  enum class Kind : std::uint8_t { kNoRows, kNotYet, kEnded };
  Kind kind = Kind::kNoRows;
  CommitSequence at{};

  // Whether the root had ended when an order was durable.
  [[nodiscard]] bool is_before(CommitSequence order) const {
    return kind == Kind::kEnded && at < order;
  }
};

// A result that does not fit into a batch stays where the records of live procedures are.
Result<End> end_in_state(ProcedureId root, const Row& row) {
  Execution stored;
  PartStatus user = PartStatus::kIntact;
  Status decoded = decode_state(row.value, row.sequence, stored, user);
  if (!decoded.ok()) return decoded.with_context("record of " + name_of(root));
  if (!is_finished(stored.record.state)) return End{.kind = End::Kind::kNotYet};
  return End{.kind = End::Kind::kEnded, .at = row.sequence};
}

// Between two looks an end may move the record to the results, and an abort may move it back.
Result<End> end_of(ProcedureStore& store, ProcedureId root) {
  for (int look = 0; look < 2; ++look) {
    const auto state = read_row(store, Space::kProcedure, procedure_key(root, RowKind::kState));
    if (!state.ok()) return state.status();
    if (*state) return end_in_state(root, **state);
    const auto result = read_row(store, Space::kResult, result_key(root));
    if (!result.ok()) return result.status();
    if (*result) return End{.kind = End::Kind::kEnded, .at = (*result)->sequence};
  }
  return End();
}

// A root whose record is lost or cannot be read counts as one that has not ended.
bool counts_as_live(EngineCore& core, ProcedureId root) {
  StateLock lock(core);
  return core.find(root) != nullptr || core.state.unreadable.contains(root);
}

// Memory has the result of `root`, whose rows are gone: it is just being acknowledged.
bool is_being_acknowledged(EngineCore& core, ProcedureId root) {
  StateLock lock(core);
  return core.find(root) == nullptr && core.state.submissions.completed.contains(root);
}

bool is_abort(const AuditEntry& entry) { return entry.verb == RepairVerb::kFailAndRollBack; }

// The orders of `trail` without those that were not carried out. The orders of a tree that is
// forgotten are none, though their rows may be there for a moment longer.
Status leave_out_late(EngineCore& core, AuditTrail& trail,
                      const std::vector<CommitSequence>& sequences) {
  if (trail.entries.empty()) return Status();
  const auto end = end_of(core.store, trail.root);
  if (end.status().code() == StatusCode::kCorruption) return Status();  // counts as not ended
  if (!end.ok()) return end.status();
  if (end->kind == End::Kind::kNoRows && !counts_as_live(core, trail.root)) trail.entries.clear();
  std::size_t at = 0;
  std::erase_if(trail.entries, [&](const AuditEntry& entry) {
    return end->is_before(sequences[at++]) && is_abort(entry);
  });
  return Status();
}

}  // namespace

Result<AuditTrail> read_audit(EngineCore& core, ProcedureId id) {
  AuditTrail trail = place_to_look(core, id);
  std::vector<CommitSequence> sequences;
  Status scanned = for_each_order(core, trail, [&](const StoredRow& row, AuditEntry entry) {
    trail.entries.push_back(std::move(entry));
    sequences.push_back(row.sequence);
  });
  if (scanned.ok()) scanned = leave_out_late(core, trail, sequences);
  if (!scanned.ok()) return scanned.with_context("the audit of " + name_of(id));
  return trail;
}

Result<std::optional<AuditEntry>> find_order(EngineCore& core, ProcedureId id, const Nonce& nonce) {
  {
    StateLock lock(core);
    const Execution* const found = core.find(id);
    if (found != nullptr && !found->root()->audited) return std::optional<AuditEntry>();
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
  if (order ? !is_abort(*order) : trail.live) return order;
  const auto end = end_of(core.store, trail.root);
  if (!end.ok()) return end.status().with_context(what);
  if (end->kind != End::Kind::kNoRows) {
    return end->is_before(sequence) ? std::optional<AuditEntry>() : std::move(order);
  }
  if (order && counts_as_live(core, trail.root)) return order;
  if (order || is_being_acknowledged(core, trail.root)) return forgotten(trail.root);
  return order;
}

}  // namespace pv2
