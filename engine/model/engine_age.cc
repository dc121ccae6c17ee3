// SPDX-License-Identifier: Apache-2.0
//
// look() decides whether the wall clock can be trusted.

#include "model/engine_age.h"

#include <pv2/base/assert.h>

#include <algorithm>

namespace pv2 {

EngineAge::EngineAge(const Clock& clock)
    : clock_(clock),
      began_(clock.steady_now()),
      agree_since_(began_),
      agree_from_(clock.wall_now()) {}

void EngineAge::go_on_from(const AgeMark& mark) {
  MutexLock lock(age_mutex_);
  constexpr Duration kOldest = Duration::max() / 4;  // 73 000 years
  base_ = std::clamp(mark.age, Duration::zero(), kOldest);
  trusted_age_ = std::clamp(mark.trusted_age, Duration::zero(), base_);
  if (mark.trusted_at && *mark.trusted_at >= WallTime()) trusted_at_ = mark.trusted_at;
}

Duration EngineAge::age_at(SteadyTime steady) const {
  PV2_ASSERT(steady >= began_, "a monotonic clock does not go backwards");
  return base_ + (steady - began_);
}

Duration EngineAge::now() const {
  MutexLock lock(age_mutex_);
  return age_at(clock_.steady_now());
}

AgeMark EngineAge::mark() const {
  MutexLock lock(age_mutex_);
  return {age_at(clock_.steady_now()), trusted_age_, trusted_at_};
}

Duration EngineAge::since(Duration date) const {
  PV2_ASSERT(date >= Duration::zero(), "an age is not negative");
  MutexLock lock(age_mutex_);
  const Duration counted = age_at(clock_.steady_now()) - date;
  return date < before_gap_ ? counted + gap_ : counted;
}

void EngineAge::look() {
  MutexLock lock(age_mutex_);
  const SteadyTime steady = clock_.steady_now();
  const WallTime wall = clock_.wall_now();
  const WallTime expected = later(agree_from_, steady - agree_since_);
  const bool agree =
      wall < expected ? later(wall, kTolerance) >= expected : later(expected, kTolerance) >= wall;
  if (!agree) {
    agree_since_ = steady;
    agree_from_ = wall;
    return;
  }
  if (steady - agree_since_ < kProbation) return;
  // Never more than is certain: the time that engines ran between the two moments is in the age
  // already. What was dated after the first moment may be younger than a part of the gap, because
  // there may have been a life in between whose clock could not be trusted.
  if (trusted_at_ && !knows_gap_ && *trusted_at_ < wall) {
    const Duration by_wall = wall - *trusted_at_;
    const Duration counted = age_at(steady) - trusted_age_;
    PV2_ASSERT(counted >= Duration::zero(), "an age only grows");
    gap_ = std::clamp(by_wall - counted - 2 * kTolerance, Duration::zero(), Duration::max() / 4);
    before_gap_ = trusted_age_;
  }
  knows_gap_ = true;
  trusted_age_ = age_at(steady);
  trusted_at_ = wall;
}

}  // namespace pv2
