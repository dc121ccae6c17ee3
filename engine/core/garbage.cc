// SPDX-License-Identifier: Apache-2.0
//
// How a chunk of rows is deleted, and what follows: the next chunk, the next chain of the tree, or
// the answers to those that wait for the last chain.

#include "core/garbage.h"

#include <utility>

#include "core/effects.h"
#include "core/engine_core.h"
#include "model/requests.h"
#include "records/row_keys.h"

namespace pv2 {

PendingGarbage::PendingGarbage() = default;
PendingGarbage::~PendingGarbage() = default;
PendingGarbage::PendingGarbage(PendingGarbage&&) noexcept = default;
PendingGarbage& PendingGarbage::operator=(PendingGarbage&&) noexcept = default;

void Garbage::delete_rows(std::unique_ptr<GarbageCommit> garbage, Effects& effects) {
  const auto at = pending.find(garbage->root);
  PV2_ASSERT(at != pending.end() && at->second.chains != 0,
             "rows are deleted for a root that counts the chain");
  PendingGarbage& of_root = at->second;
  if (std::exchange(of_root.under_way, true)) {
    of_root.next.push_back(std::move(garbage));
  } else {
    effects.garbage.push_back(std::move(garbage));
  }
}

void Garbage::delete_dropped(Effects& effects) {
  for (auto& [root, rows] : dropped) delete_rows(std::move(rows), effects);
  dropped.clear();
}

void GarbageCommit::fill(std::size_t chunk) {
  PV2_ASSERT(chunk != 0, "each chunk deletes something");
  PV2_ASSERT(next <= left.size(), "rows are deleted once");
  batch.clear();
  for (const auto& [id, inbox] : inboxes) {
    for (const auto& message : inbox->messages) {
      rows.push_back(inbox_key(id, message->number));
    }
  }
  inboxes.clear();
  for (; chunk > 0 && !rows.empty(); --chunk) {
    batch.erase(Space::kProcedure, rows.back());
    rows.pop_back();
  }
  for (; chunk > 0 && next < left.size(); --chunk) {
    const ProcedureId id = left[next++];
    batch.erase(Space::kProcedure, procedure_key(id, RowKind::kHeader));
    batch.erase(Space::kProcedure, procedure_key(id, RowKind::kState));
  }
  for (; chunk > 0 && !engine_rows.empty(); --chunk) {
    const auto& [key, value] = engine_rows.back();
    value.empty() ? batch.erase(Space::kEngine, key) : batch.put(Space::kEngine, key, value);
    engine_rows.pop_back();
  }
}

void GarbageCommit::published(EngineCore& core, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  std::unique_ptr<GarbageCommit> owned(this);
  if (next < left.size() || !rows.empty() || !engine_rows.empty()) {
    effects.garbage.push_back(std::move(owned));
    return;
  }
  if (!root) return;
  const auto at = core.state.garbage.pending.find(root);
  PV2_ASSERT(at != core.state.garbage.pending.end(),
             "garbage belongs to a root that is remembered");
  PV2_ASSERT(at->second.chains > 0, "garbage that is deleted was counted");
  PendingGarbage& pending = at->second;
  pending.under_way = !pending.next.empty();
  if (pending.under_way) {
    effects.garbage.push_back(std::move(pending.next.front()));
    pending.next.erase(pending.next.begin());
  }
  if (--pending.chains != 0) return;
  for (Reply<Status>& each : pending.acknowledgements) effects.reply(std::move(each), Status());
  core.state.garbage.pending.erase(at);
}

// The rows that the acknowledgements ask to delete were not touched, so their callers get
// `not_written`.
void GarbageCommit::failed(EngineCore& core, const RequestFailure& why, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  const std::unique_ptr<GarbageCommit> owned(this);
  const auto at = core.state.garbage.pending.find(root);
  if (at == core.state.garbage.pending.end()) return;
  for (Reply<Status>& each : at->second.acknowledgements) {
    effects.reply(std::move(each), why.not_written);
  }
  at->second.acknowledgements.clear();
}

}  // namespace pv2
