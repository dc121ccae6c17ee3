// SPDX-License-Identifier: Apache-2.0
//
// check_no_upgrade(): walks up the tree once per exclusive request.

#include "pv2/scheduler/lock_upgrade.h"

#include <optional>
#include <string>

namespace pv2 {
namespace {

// The nearest ancestor that shares `key` until it ends, unless one further up asks for it
// exclusively and so covers everything.
const SchedulerEntry* sharing_ancestor(const SchedulerEntry& entry, const ResourceKey& key) {
  const SchedulerEntry* sharing = nullptr;
  for (const SchedulerEntry* a = entry.parent(); a != nullptr; a = a->parent()) {
    if (a->locks().scope() != LockScope::kOperation) continue;
    const std::optional<LockMode> mode = a->locks().find(key);
    if (!mode) continue;
    if (mode == LockMode::kExclusive) return nullptr;
    if (sharing == nullptr) sharing = a;
  }
  return sharing;
}

}  // namespace

Status check_no_upgrade(const SchedulerEntry& entry) {
  const EntryLocks& locks = entry.locks();
  for (std::size_t i = 0; i < locks.size(); ++i) {
    if (locks.mode(i) != LockMode::kExclusive) continue;
    if (const SchedulerEntry* const ancestor = sharing_ancestor(entry, locks.key(i))) {
      return {StatusCode::kInvalidArgument,
              "procedure " + std::to_string(entry.id.value) + " asks for " +
                  to_string(locks.key(i)) + " exclusively, which its ancestor " +
                  std::to_string(ancestor->id.value) +
                  " only shares: locks are not upgraded; let the ancestor ask for it exclusively"};
    }
  }
  return {};
}

}  // namespace pv2
