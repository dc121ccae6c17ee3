// SPDX-License-Identifier: Apache-2.0
//
// RunPace: how long the steps of one worker take, so that it knows how many procedures are worth a
// worker of their own, whether a run is worth sharing with an idle worker, whether it ends soon,
// when the records of a run have waited for long enough, and how many rounds of steps a run may
// have. An estimate: no result depends on it, and a clock that jumps does no harm.

#pragma once

#include <pv2/base/clock.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace pv2 {

/// Owned by its worker.
class RunPace {
 public:
  /// What it costs to divide a run between two workers.
  enum class Dividing : std::uint8_t {
    kCostsWake,  ///< Another thread is woken.
    kCostsSync,  ///< And the records of the two halves are synced one after the other.
  };
  explicit RunPace(Dividing dividing) noexcept
      : divides_(dividing), worth_dividing_(dividing == Dividing::kCostsSync ? kSync : kWake) {}

  /// A new run begins: the first of its rounds follows.
  void begin_run() noexcept {
    if (in_first_round_ != 0) {
      const std::chrono::nanoseconds each = (looked_ - first_) / in_first_round_;
      mean_ = (3 * mean_ + std::clamp<std::chrono::nanoseconds>(each, {}, kMost)) / 4;
      is_known_ = true;
    }
    steps_ = in_first_round_ = 0;
    rounds_ = 0;
    is_new_run_ = true;
  }
  /// Each procedure of the run has one step in a round.
  void begin_round() noexcept { ++rounds_; }
  /// A step begins.
  void begin_step(WallTime now) noexcept {
    if (steps_++ == 0) first_ = now;
    if (rounds_ == 1) ++in_first_round_;
  }

  /// How many procedures the worker takes for itself, at least one, though other workers sleep.
  /// Only if they would share a sync, and it is known how long they take.
  [[nodiscard]] std::size_t own() const noexcept {
    if (divides_ != Dividing::kCostsSync || !is_known_) return 1;
    const auto fit = worth_dividing_ / std::max(mean_, std::chrono::nanoseconds(1));
    return std::max<std::size_t>(1, static_cast<std::size_t>(fit));
  }
  /// Whether another worker should take some of `jobs`, with which a round has begun. From a long
  /// run it should: if it were not idle, the run would end as soon as other procedures are ready.
  [[nodiscard]] bool is_worth_sharing(std::size_t jobs) const noexcept {
    return is_long() ||
           (rounds_ == 1 && mean_ * static_cast<std::int64_t>(jobs) >= worth_dividing_);
  }
  /// Whether a round of `jobs` that begins now is over before another thread would have published a
  /// long list.
  [[nodiscard]] bool ends_soon(std::size_t jobs) const noexcept {
    return mean_ * static_cast<std::int64_t>(jobs) < kListTakes;
  }
  /// Whether the run has taken so long that it ends when other procedures are ready.
  [[nodiscard]] bool is_long() const noexcept {
    return steps_ != 0 && (rounds_ >= kRoundsFew || looked_ - first_ >= kRecordsWait);
  }
  /// Whether a long run may go on: a worker has other things to do between two runs.
  [[nodiscard]] bool may_be_longer() const noexcept { return rounds_ < kRoundsMost; }
  /// Whether the records of the run should be handed over, though it has not ended. When it is
  /// true, the caller does so. Asked at each look. Always true for the first question of a run,
  /// which has no records.
  [[nodiscard]] bool records_are_due(WallTime now) noexcept {
    looked_ = now;
    if (!is_new_run_ && now - handed_over_ < kRecordsWait) return false;
    is_new_run_ = false;
    handed_over_ = now;
    return true;
  }

 private:
  // A half of the run takes longer than a thread to wake up (20 us), or than a sync and that.
  static constexpr std::chrono::nanoseconds kWake = std::chrono::microseconds(60);
  static constexpr std::chrono::nanoseconds kSync = std::chrono::microseconds(250);
  // About a sync.
  static constexpr Duration kRecordsWait = std::chrono::microseconds(100);
  // A list of hundreds of records, to be published.
  static constexpr Duration kListTakes = std::chrono::microseconds(400);
  // Of one procedure; longer ones make no difference.
  static constexpr std::chrono::nanoseconds kMost = 2 * kListTakes;
  static constexpr unsigned kRoundsFew = 8;
  static constexpr unsigned kRoundsMost = 1024;

  const Dividing divides_;
  const std::chrono::nanoseconds worth_dividing_;
  std::chrono::nanoseconds mean_{};  // per procedure in the last runs
  bool is_known_ = false;            // there was a run
  std::int64_t steps_ = 0;           // of this run
  std::int64_t in_first_round_ = 0;  // of them
  unsigned rounds_ = 0;
  WallTime first_{};   // when the first step of this run began
  WallTime looked_{};  // when the worker last looked what is next: after the last step, too
  WallTime handed_over_{};
  bool is_new_run_ = true;
};

}  // namespace pv2
