// SPDX-License-Identifier: Apache-2.0
//
// Ids grow from parent to child, so a root comes before its descendants. A root that was neither
// linked nor is among what was just read has ended, or is lost.

#include "recovery/ended_roots.h"

#include <algorithm>
#include <utility>

#include "core/state_lock.h"
#include "records/row_keys.h"

namespace pv2 {
namespace {

// Whether `root` is linked, about to be linked, or set aside. A root that cannot be read counts as
// one that has not ended.
bool is_there(EngineCore& core, ProcedureId root, const ReadRecords& read)
    PV2_EXCLUDES(core.state_mutex) {
  const auto at = std::lower_bound(
      read.procedures.begin(), read.procedures.end(), root,
      [](const LoadedProcedure& loaded, ProcedureId id) { return loaded.execution->id < id; });
  if (at != read.procedures.end() && at->execution->id == root) return true;
  const bool is_unreadable =
      std::any_of(read.unreadable.begin(), read.unreadable.end(),
                  [&](const UnreadableRecord& record) { return record.id == root; });
  StateLock lock(core);
  return is_unreadable || core.find(root) != nullptr || core.state.unreadable.contains(root);
}

}  // namespace

bool EndedRoots::has_ended(ProcedureId root) const {
  const auto known = ended_.find(root);
  return known != ended_.end() && known->second;
}

Status EndedRoots::ask_about(EngineCore& core, const ReadRecords& read) {
  ProcedureId last;  // neighbours usually have the same root
  const auto ask = [&](ProcedureId root) {
    return root == std::exchange(last, root) ? Status() : ask_about(core, root, read);
  };
  for (const LoadedProcedure& loaded : read.procedures) {
    if (loaded.root == loaded.execution->id) continue;
    if (Status status = ask(loaded.root); !status.ok()) return status;
  }
  for (const AuditCopy& copy : read.audit_copies) {
    if (Status status = ask(copy.root); !status.ok()) return status;
  }
  return Status();
}

Status EndedRoots::ask_about(EngineCore& core, ProcedureId root, const ReadRecords& read) {
  if (ended_.contains(root) || is_there(core, root, read)) return Status();
  const auto row = core.store.get(Space::kResult, result_key(root));
  if (row.ok()) ended_.emplace(root, row->has_value());
  return row.status();
}

}  // namespace pv2
