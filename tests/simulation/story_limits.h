// SPDX-License-Identifier: Apache-2.0
//
// StoryLimits: the limits on keys that operators of a simulated run set. An acknowledged limit
// holds in every later life, and no more trees hold the key than it allows, except those that held
// the key before.

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
  /// For a limit that was not acknowledged, the value in the store counts.
  void begin_life(ProcedureExecutor& executor);
  /// Called after every move.
  void check(ProcedureExecutor& executor, Findings& findings);

 private:
  struct Known {
    Limit limit;
    bool is_known = true;      ///< Whether it was acknowledged.
    std::size_t may_hold = 0;  ///< The holders from before the limit, which go on.
  };
  [[nodiscard]] static Limit limit_of(const LockInfo* lock) {
    return lock == nullptr ? std::nullopt : lock->limit;
  }
  /// How many trees hold the key.
  [[nodiscard]] static std::size_t holders_of(const LockInfo* lock, ProcedureExecutor& executor);

  std::map<ResourceKey, Known> keys_;
};

}  // namespace pv2::testing
