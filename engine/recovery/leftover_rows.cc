// SPDX-License-Identifier: Apache-2.0
//
// Messages become orphans one by one; members are deleted as a chain of their root's garbage.

#include "recovery/leftover_rows.h"

#include <iterator>
#include <memory>
#include <utility>

#include "core/effects.h"
#include "records/row_keys.h"

namespace pv2 {
namespace {

void delete_chain(EngineCore& core, ProcedureId root, std::vector<ProcedureId> members,
                  Effects& effects) PV2_REQUIRES(core.state_mutex) {
  auto garbage = std::make_unique<GarbageCommit>();
  garbage->root = root;
  garbage->left = std::move(members);
  ++core.state.garbage.pending[root].chains;
  core.state.garbage.delete_rows(std::move(garbage), effects);
}

}  // namespace

void LeftoverRows::add_orphans(std::vector<std::string> keys) {
  for (const std::string& key : keys) {
    const auto order = parse_procedure_key(key);
    if (order && order->kind == RowKind::kAudit) late_orders_.emplace(order->id, order->number);
  }
  std::move(keys.begin(), keys.end(), std::back_inserter(orphans_));
}

void LeftoverRows::add_copy(AuditCopy copy, bool root_is_there) {
  const auto key = parse_procedure_key(copy.key);
  PV2_ASSERT(key && key->kind == RowKind::kAudit, "the copy of an order has the key of an order");
  const bool too_late = late_orders_.contains({copy.root, key->number});
  if (!root_is_there || too_late) copies_.push_back(std::move(copy));
}

// Only the members that are linked tell that the record of a root is lost. Until then its messages
// and orders look like those of a procedure that is gone.
void LeftoverRows::keep_rows_of(const FlatMap<ProcedureId, Execution*>& lost) {
  if (lost.empty()) return;
  std::erase_if(orphans_, [&](const std::string& key) {
    const auto row = parse_procedure_key(key);
    const auto found = row ? lost.find(row->id) : lost.end();
    if (found == lost.end()) return false;
    go_on_above(*row, *found->second);
    if (row->kind == RowKind::kAudit) found->second->audited = true;
    return true;
  });
  std::erase_if(copies_, [&](const AuditCopy& copy) { return lost.contains(copy.root); });
}

void LeftoverRows::add_of_ended_root(const LoadedProcedure& loaded) {
  of_ended_roots_[loaded.root].push_back(loaded.execution->id);
  add_messages_of(loaded);
}

void LeftoverRows::add_of_live_root(const LoadedProcedure& loaded) {
  of_live_roots_[loaded.root].push_back(loaded.execution->id);
  add_messages_of(loaded);
}

void LeftoverRows::add_messages_of(const LoadedProcedure& loaded) {
  const Execution& execution = *loaded.execution;
  if (!execution.inbox) return;
  for (const auto& message : execution.inbox->messages) {
    orphans_.push_back(inbox_key(execution.id, message->number));
  }
}

void LeftoverRows::delete_orphans(Effects& effects) {
  for (AuditCopy& copy : copies_) orphans_.push_back(std::move(copy.key));
  if (orphans_.empty()) return;
  auto garbage = std::make_unique<GarbageCommit>();
  garbage->rows = std::move(orphans_);
  effects.garbage.push_back(std::move(garbage));
}

void LeftoverRows::delete_members(EngineCore& core, Effects& effects) {
  for (auto& [root, ids] : of_live_roots_) {
    delete_chain(core, root, {ids.rbegin(), ids.rend()}, effects);
  }
  for (auto& [root, ids] : of_ended_roots_) delete_chain(core, root, std::move(ids), effects);
}

}  // namespace pv2
