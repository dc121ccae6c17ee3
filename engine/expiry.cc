// SPDX-License-Identifier: Apache-2.0
//
// Expiry goes by the wall clock, as results are dated with it. It looks at most once a minute: for
// a retention of half an hour and more that is often enough.

#include "expiry.h"

#include <algorithm>
#include <chrono>

namespace pv2 {
namespace {

// Acknowledged together: one batch of the committer.
constexpr std::size_t kAtOnce = 512;
constexpr Duration kPause = std::chrono::minutes(1);

}  // namespace

std::optional<SteadyTime> Expiry::next_due() {
  std::optional<WallTime> next;
  {
    StateLock lock(core_);
    next = core_.state.retention.next_expiry();
  }
  if (!next) return std::nullopt;
  const Duration left = std::max(*next - core_.clock.wall_now(), Duration::zero());
  return later(core_.clock.steady_now(), std::max(left, kPause));
}

std::size_t Expiry::fire(SteadyTime now) {
  std::vector<ProcedureId> expired;
  {
    StateLock lock(core_);
    if (now < not_before_) return 0;
    expired = core_.state.retention.take_expired(core_.clock.wall_now(), kAtOnce);
  }
  if (expired.empty()) return 0;
  core_.pool->post_blocking([this, expired] {  // it may have to look into the store
    for (const ProcedureId id : expired) {
      results_.acknowledge(
          id, {.answer = [this, id](const Status& status) { acknowledged(id, status); },
               .on_pool = false});
    }
  });
  return expired.size();
}

void Expiry::acknowledged(ProcedureId id, const Status& status) {
  if (status.ok()) return;
  bool first = false;
  {
    StateLock lock(core_);
    if (!core_.unavailable().ok()) return;  // the next run finds it too old again
    const SteadyTime now = core_.clock.steady_now();
    first = not_before_ <= now;
    not_before_ = later(now, kPause);
    core_.state.retention.put_back(id);
  }
  if (!first) return;  // one line for all that fail together
  log(core_.options.log, LogLevel::kWarning,
      "the result of procedure " + std::to_string(id.value) +
          " has been kept long enough but could not be deleted, which is tried again in a "
          "minute: " +
          status.to_string());
}

}  // namespace pv2
