// SPDX-License-Identifier: Apache-2.0
//
// Retention: whether there is room for more keyed submissions, how large the results are that are
// kept, and which have been kept long enough. Nothing is evicted early: at a limit new keyed
// submissions are refused, and a result goes only when it is acknowledged or its time is over. It
// keeps its books only when the host has set a limit of bytes or a time.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "pv2/engine/procedure_executor.h"

namespace pv2 {

/// Guarded by the engine's state mutex.
class Retention {
 public:
  explicit Retention(const RetentionPolicy& policy) : policy_(policy) {}

  [[nodiscard]] bool keeps_books() const noexcept {
    return policy_.ttl != Duration::zero() || policy_.max_bytes != 0;
  }
  /// A root has ended, in this run or one before; `bytes` is about what its rows take.
  void kept(ProcedureId id, WallTime finished, std::size_t bytes);
  /// Its result is gone.
  void gone(ProcedureId id);

  /// OK, or why no new keyed submission is accepted while so many nonces are known: of live
  /// procedures, each of which will have a result, and of results.
  [[nodiscard]] Status room(std::size_t nonces) const;
  /// When the oldest result has been kept long enough.
  [[nodiscard]] std::optional<WallTime> next_expiry() const;
  /// Those whose time is over at `now`, oldest first, at most `most`. They are not offered again,
  /// unless they are put back.
  [[nodiscard]] std::vector<ProcedureId> take_expired(WallTime now, std::size_t most);
  /// It could not be deleted; if it is still kept it is offered again.
  void put_back(ProcedureId id);

 private:
  struct Kept {
    WallTime finished{};
    std::uint64_t bytes = 0;
  };

  const RetentionPolicy policy_;
  boost::unordered_flat_map<ProcedureId, Kept, std::hash<ProcedureId>> kept_;
  std::set<std::pair<WallTime, ProcedureId>> by_age_;  // with a time to live only
  std::uint64_t bytes_ = 0;
};

}  // namespace pv2
