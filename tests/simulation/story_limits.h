// SPDX-License-Identifier: Apache-2.0
//
// StoryLimits: the limits on keys that operators of a simulated run set. A limit that was
// acknowledged holds in every later life, and no more trees hold the key than it lets, but for
// those who held it already.

#pragma once

#include <pv2/engine/procedure_executor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "pv2/testing/findings.h"

namespace pv2::testing {

/// Owned by one thread.
class StoryLimits {
 public:
  using Limit = std::optional<std::uint32_t>;

  void set(const ResourceKey& key, Limit limit, ProcedureExecutor& executor);
  /// What nobody has acknowledged is what the store says now.
  void begin_life(ProcedureExecutor& executor);
  /// After every move.
  void check(ProcedureExecutor& executor, Findings& findings);

 private:
  struct Known {
    Limit limit;
    bool is_known = true;      ///< Whether it was acknowledged.
    std::size_t may_hold = 0;  ///< So many, as those who held it before the limit go on.
  };
  [[nodiscard]] static Limit limit_of(const LockInfo* lock) {
    return lock == nullptr ? std::nullopt : lock->limit;
  }
  /// How many trees hold it.
  [[nodiscard]] static std::size_t holders_of(const LockInfo* lock, ProcedureExecutor& executor);

  std::map<ResourceKey, Known> keys_;
};

}  // namespace pv2::testing
