// SPDX-License-Identifier: Apache-2.0
//
// Retention: how many bytes the kept results take, and whether one more submission with a nonce may
// be accepted. No result is evicted early: at a limit new submissions with a nonce are refused, and
// a result goes only when it is acknowledged or expires. A store that keeps records has a row with
// the date of each result, in the order in which they expire (KeptResult). For a store that keeps
// none, the dates are in memory, here.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "pv2/engine/retention_policy.h"
#include "records/kept_result.h"

namespace pv2 {

/// Guarded by the engine's state mutex.
class Retention {
 public:
  Retention(const RetentionPolicy& policy, bool store_keeps_results)
      : policy_(policy), remembers_(!store_keeps_results && policy.ttl != Duration::zero()) {}

  /// Whether bytes() is known: bytes are counted only if they are limited.
  [[nodiscard]] bool counts() const noexcept { return policy_.max_bytes != 0; }

  /// Counts the result of a root that has ended, in this run or an earlier one. Its rows take about
  /// `bytes`.
  void kept(ProcedureId id, Duration age, std::uint64_t bytes);
  /// Counts a result that was kept() and is gone now.
  void gone(ProcedureId id, Duration age, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// OK, or why no new submission with a nonce is accepted. `nonces` is the number of nonces of
  /// live procedures, each of which will have a result, and of results.
  [[nodiscard]] Status why_full(std::size_t nonces) const;
  /// The oldest result, if results expire and the store does not keep them.
  [[nodiscard]] std::optional<KeptResult> oldest_remembered() const;

 private:
  const RetentionPolicy policy_;
  const bool remembers_;
  std::set<std::pair<Duration, ProcedureId>> by_age_;  // oldest first
  std::uint64_t bytes_ = 0;
};

}  // namespace pv2
