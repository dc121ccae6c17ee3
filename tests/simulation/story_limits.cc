// SPDX-License-Identifier: Apache-2.0
//
// A tree counts as one holder, however many of its members hold the key.

#include "simulation/story_limits.h"

#include <pv2/engine/inspection.h>
#include <pv2/engine/operator_console.h>

#include <algorithm>
#include <set>
#include <vector>

namespace pv2::testing {
namespace {

const LockInfo* find(const std::vector<LockInfo>& locks, const ResourceKey& key) {
  const auto at = std::find_if(locks.begin(), locks.end(),
                               [&](const LockInfo& lock) { return lock.key == key; });
  return at == locks.end() ? nullptr : &*at;
}

}  // namespace

std::size_t StoryLimits::holders_of(const LockInfo* lock, ProcedureExecutor& executor) {
  if (lock == nullptr) return 0;
  std::set<std::uint64_t> trees;
  for (const LockInfo::Party& party : lock->holders) {
    const auto info = executor.inspect().describe(party.id);
    if (info.ok()) trees.insert(info->root.value);  // else its record is about to become durable
  }
  return trees.size();
}

void StoryLimits::set(const ResourceKey& key, Limit limit, ProcedureExecutor& executor) {
  const bool done = executor.operate().set_limit(key, limit).ok();
  const std::vector<LockInfo> locks = executor.inspect().locks();
  Known& known = keys_[key];
  known = {.limit = limit, .is_known = done, .may_hold = holders_of(find(locks, key), executor)};
}

void StoryLimits::begin_life(ProcedureExecutor& executor) {
  const std::vector<LockInfo> locks = executor.inspect().locks();
  for (auto& [key, known] : keys_) {
    const LockInfo* const lock = find(locks, key);
    if (!known.is_known) known.limit = limit_of(lock);
    known.is_known = true;
    known.may_hold = holders_of(lock, executor);
  }
}

void StoryLimits::check(ProcedureExecutor& executor, Findings& findings) {
  if (keys_.empty()) return;
  const std::vector<LockInfo> locks = executor.inspect().locks();
  for (auto& [key, known] : keys_) {
    if (!known.is_known) continue;
    const LockInfo* const lock = find(locks, key);
    if (limit_of(lock) != known.limit) {
      findings.add("the limit on " + to_string(key) + " is not the one that was set");
    }
    if (!known.limit) continue;
    const std::size_t holders = holders_of(lock, executor);
    const std::size_t most = std::max<std::size_t>(*known.limit, known.may_hold);
    if (holders > most) {
      findings.add(to_string(key) + " is held by " + std::to_string(holders) + " trees; " +
                   std::to_string(most) + " may");
    }
    known.may_hold = holders;
  }
}

}  // namespace pv2::testing
