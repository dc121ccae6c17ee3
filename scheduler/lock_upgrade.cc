// SPDX-License-Identifier: Apache-2.0
//
// check_no_upgrade(): walks up the tree once per exclusive request.

#include "pv2/scheduler/lock_upgrade.h"

#include <algorithm>
#include <string>

namespace pv2 {
namespace {

const LockRequest* request_of(const SchedulerEntry& entry, const ResourceKey& key) {
  const auto& requests = entry.locks().requests();  // in order of their keys
  const auto at = std::ranges::lower_bound(requests, key, {}, &LockRequest::key);
  return at == requests.end() || at->key != key ? nullptr : &*at;
}

// The nearest ancestor that shares `key`, unless one further up asks for it exclusively and so
// covers everything.
const SchedulerEntry* sharing_ancestor(const SchedulerEntry& entry, const ResourceKey& key) {
  const SchedulerEntry* sharing = nullptr;
  for (const SchedulerEntry* a = entry.parent; a != nullptr; a = a->parent) {
    if (a->locks().scope() == LockScope::kStep) continue;
    const LockRequest* const request = request_of(*a, key);
    if (request == nullptr) continue;
    if (request->mode == LockMode::kExclusive) return nullptr;
    if (sharing == nullptr) sharing = a;
  }
  return sharing;
}

}  // namespace

Status check_no_upgrade(const SchedulerEntry& entry) {
  for (const LockRequest& request : entry.locks().requests()) {
    if (request.mode != LockMode::kExclusive) continue;
    if (const SchedulerEntry* const ancestor = sharing_ancestor(entry, request.key)) {
      return {StatusCode::kInvalidArgument,
              "procedure " + std::to_string(entry.id.value) + " asks for " +
                  to_string(request.key) + " exclusively, which its ancestor " +
                  std::to_string(ancestor->id.value) +
                  " only shares: locks are not upgraded; let the ancestor ask for it exclusively"};
    }
  }
  return {};
}

}  // namespace pv2
