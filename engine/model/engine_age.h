// SPDX-License-Identifier: Apache-2.0
//
// EngineAge: how old a store is, as far as that is certain: the time that its engines have run, by
// the monotonic clock, from life to life. Results are dated and forgotten by it, so no wall clock,
// however wrong, makes a key expire early. Whatever is uncertain makes it lag: the time since the
// last mark when a process dies, and the time in which no process runs.
//
// That time is made up for when it is beyond doubt: two moments, one before and one after it, at
// which the wall clock had agreed with the monotonic one for an hour. Their distance by the wall
// clock is believed.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/mutex.h>

#include <optional>

namespace pv2 {

/// What a store keeps of it.
struct AgeMark {
  Duration age{};
  /// The last moment at which the wall clock was beyond doubt: its age, and that clock.
  Duration trusted_age{};
  std::optional<WallTime> trusted_at;
};

/// Thread-safe.
class EngineAge {
 public:
  /// So long both clocks have to agree before the wall clock is believed. The wrong hour that a
  /// machine wakes up with is usually put right within minutes.
  static constexpr Duration kProbation = std::chrono::hours(1);
  /// As far as they may be apart meanwhile: more than a clock is off that is kept in step.
  static constexpr Duration kTolerance = std::chrono::seconds(5);

  explicit EngineAge(const Clock& clock);

  /// Goes on from what the life before has left. Once, before the first look().
  void go_on_from(const AgeMark& mark) PV2_EXCLUDES(age_mutex_);
  /// Never less than before.
  [[nodiscard]] Duration now() const PV2_EXCLUDES(age_mutex_);
  [[nodiscard]] AgeMark mark() const PV2_EXCLUDES(age_mutex_);
  /// Compares the two clocks. Every few minutes.
  void look() PV2_EXCLUDES(age_mutex_);

 private:
  [[nodiscard]] Duration age_at(SteadyTime steady) const PV2_REQUIRES(age_mutex_);

  const Clock& clock_;
  mutable Mutex age_mutex_;
  SteadyTime began_ PV2_GUARDED_BY(age_mutex_);  // when the age was `base_`
  Duration base_ PV2_GUARDED_BY(age_mutex_){};
  SteadyTime agree_since_ PV2_GUARDED_BY(age_mutex_);  // the clocks, and what they said then
  WallTime agree_from_ PV2_GUARDED_BY(age_mutex_);
  bool made_up_ PV2_GUARDED_BY(age_mutex_) = false;  // for the time before this life
  Duration trusted_age_ PV2_GUARDED_BY(age_mutex_){};
  std::optional<WallTime> trusted_at_ PV2_GUARDED_BY(age_mutex_);
};

}  // namespace pv2
