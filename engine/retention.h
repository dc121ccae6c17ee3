// SPDX-License-Identifier: Apache-2.0
//
// Retention: whether there is room for more keyed submissions, how large the results are that are
// kept, and, where the store keeps none, which have been kept long enough. Nothing is evicted
// early: at a limit new keyed submissions are refused, and a result goes only when it is
// acknowledged or its time is over. What a store keeps is dated there (KeptResult), in the order in
// which it is to go; nothing is remembered here of each.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "kept_result.h"
#include "pv2/engine/executor_options.h"

namespace pv2 {

/// Guarded by the engine's state mutex.
class Retention {
 public:
  Retention(const RetentionPolicy& policy, bool store_keeps_results)
      : policy_(policy), remembers_(!store_keeps_results && policy.ttl != Duration::zero()) {}

  /// Whether bytes() is known: nobody counts what nothing limits.
  [[nodiscard]] bool counts() const noexcept { return policy_.max_bytes != 0; }

  /// A root has ended, in this run or one before; `bytes` is about what its rows take.
  void kept(ProcedureId id, Duration age, std::uint64_t bytes);
  /// Its result is gone.
  void gone(ProcedureId id, Duration age, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// OK, or why no new keyed submission is accepted while so many nonces are known: of live
  /// procedures, each of which will have a result, and of results.
  [[nodiscard]] Status room(std::size_t nonces) const;
  /// The oldest result that no store keeps.
  [[nodiscard]] std::optional<KeptResult> oldest_remembered() const;

 private:
  const RetentionPolicy policy_;
  const bool remembers_;
  std::set<std::pair<Duration, ProcedureId>> by_age_;
  std::uint64_t bytes_ = 0;
};

}  // namespace pv2
