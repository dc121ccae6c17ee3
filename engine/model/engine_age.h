// SPDX-License-Identifier: Apache-2.0
//
// EngineAge: how old a store is, as far as that is certain: the time that its engines have run, by
// the monotonic clock, summed over all lives. Results are dated and expire by this age, so a wrong
// wall clock makes no key expire early. The age does not count what is uncertain: the time between
// the last mark and the death of a process, and the time in which no process runs.
//
// A gap is known later if the wall clock can be trusted at both of its ends: before the gap and
// after it there is a moment at which the wall clock had agreed with the monotonic clock for an
// hour. Then the distance of the two moments by the wall clock is believed. The gap is not added to
// the age: what this life dates from the age would seem older by it, and expire early. It counts
// for dates from before the gap, and only in the life that follows it; a date that survives into
// another life is kept longer.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/mutex.h>

#include <optional>

namespace pv2 {

/// What the store keeps of the age.
struct AgeMark {
  Duration age{};
  /// The last moment at which the wall clock could be trusted: the age, and what that clock said.
  Duration trusted_age{};
  std::optional<WallTime> trusted_at;
};

/// Thread-safe.
class EngineAge {
 public:
  /// How long both clocks have to agree before the wall clock is trusted. A machine that wakes up
  /// with a wrong hour usually corrects it within minutes.
  static constexpr Duration kProbation = std::chrono::hours(1);
  /// How far apart they may be in that time: more than the error of a synchronised clock.
  static constexpr Duration kTolerance = std::chrono::seconds(5);

  explicit EngineAge(const Clock& clock);

  /// Continues from the mark of the life before. Called once at most, before the first look().
  void go_on_from(const AgeMark& mark) PV2_EXCLUDES(age_mutex_);
  /// Never less than before.
  [[nodiscard]] Duration now() const PV2_EXCLUDES(age_mutex_);
  [[nodiscard]] AgeMark mark() const PV2_EXCLUDES(age_mutex_);
  /// How long ago `date` was, an earlier now() of this life or an earlier one. Never more than is
  /// certain.
  [[nodiscard]] Duration since(Duration date) const PV2_EXCLUDES(age_mutex_);
  /// Compares the two clocks. To be called every few minutes, and when a life ends.
  void look() PV2_EXCLUDES(age_mutex_);

 private:
  [[nodiscard]] Duration age_at(SteadyTime steady) const PV2_REQUIRES(age_mutex_);

  const Clock& clock_;
  mutable Mutex age_mutex_;
  SteadyTime began_ PV2_GUARDED_BY(age_mutex_);  // when the age was `base_`
  Duration base_ PV2_GUARDED_BY(age_mutex_){};
  SteadyTime agree_since_ PV2_GUARDED_BY(age_mutex_);  // when the clocks began to agree, by each
  WallTime agree_from_ PV2_GUARDED_BY(age_mutex_);
  bool knows_gap_ PV2_GUARDED_BY(age_mutex_) = false;  // as well as this life will know it
  Duration gap_ PV2_GUARDED_BY(age_mutex_){};          // between the lives before and this one
  Duration before_gap_ PV2_GUARDED_BY(age_mutex_){};   // dates below it are from before the gap
  Duration trusted_age_ PV2_GUARDED_BY(age_mutex_){};
  std::optional<WallTime> trusted_at_ PV2_GUARDED_BY(age_mutex_);
};

}  // namespace pv2
