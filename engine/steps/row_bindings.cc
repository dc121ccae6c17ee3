// SPDX-License-Identifier: Apache-2.0
//
// A host has a few prefixes, so they are compared one by one. A running procedure holds all the
// locks it asks for. For an ancestor, its record says whether it holds its locks.

#include "steps/row_bindings.h"

#include <algorithm>
#include <string>

#include "core/state_lock.h"
#include "pv2/engine/executor_options.h"

namespace pv2 {
namespace {

bool asks_exclusively(const Execution& execution, const ResourceKey& key) {
  return execution.locks().find(key) == LockMode::kExclusive;
}

}  // namespace

Status check_row_bindings(std::span<const RowBinding> bindings) {
  for (const RowBinding& binding : bindings) {
    if (binding.prefix.empty()) {
      return Status(StatusCode::kInvalidArgument,
                    "ExecutorOptions.row_bindings has an empty prefix, for " +
                        to_string(binding.key) + "; it would bind every row");
    }
    const auto same = std::count_if(bindings.begin(), bindings.end(), [&](const RowBinding& other) {
      return other.prefix == binding.prefix;
    });
    if (same > 1) {
      return Status(StatusCode::kInvalidArgument,
                    "ExecutorOptions.row_bindings has the prefix '" + binding.prefix + "' twice");
    }
  }
  return Status();
}

const RowBinding* binding_of(std::span<const RowBinding> bindings, std::string_view row) noexcept {
  const RowBinding* longest = nullptr;
  for (const RowBinding& binding : bindings) {
    if (!row.starts_with(binding.prefix)) continue;
    if (longest == nullptr || binding.prefix.size() > longest->prefix.size()) longest = &binding;
  }
  return longest;
}

bool holds_exclusively(EngineCore& core, const Execution& execution, const ResourceKey& key) {
  if (asks_exclusively(execution, key)) return true;
  if (execution.is_root()) return false;
  StateLock lock(core);
  for (const Execution* at = execution.parent_execution(); at != nullptr;
       at = at->parent_execution()) {
    if (at->record.holds_locks && asks_exclusively(*at, key)) return true;
  }
  return false;
}

}  // namespace pv2
