// SPDX-License-Identifier: Apache-2.0
//
// Expiry: acknowledges, in the host's place, the results that have been kept long enough, by the
// age of the store (EngineAge). It reads their dates from the oldest on and stops at the first that
// is young. It acknowledges what it found in bounded batches: while the store deletes one batch, a
// pool thread reads the rows of another. A crash before such an acknowledgement is durable leaves
// the result to the next run, which finds it too old again: the age is durable before any
// acknowledgement goes by it. A disk that cannot be read ends the look; the next one comes a minute
// later. A result that is damaged stays, and loses its date; one that is set aside stays as it is.

#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "kept_result.h"
#include "publisher.h"
#include "results.h"
#include "timed_work.h"

namespace pv2 {

/// Fired by one thread at a time.
class Expiry final : public TimedWork {
 public:
  Expiry(EngineCore& core, Publisher& publisher, Results& results)
      : core_(core), publisher_(publisher), results_(results) {}

  /// Whom to tell when the next look is at another time. Set once, before anything runs.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

  [[nodiscard]] std::optional<SteadyTime> next_due() override PV2_EXCLUDES(core_.state_mutex);
  std::size_t fire(SteadyTime now) override PV2_EXCLUDES(core_.state_mutex);

 private:
  struct Found {
    std::vector<KeptResult> expired;  // oldest first
    bool more = false;                // perhaps: as many were found as are taken at once
    std::optional<Duration> young;    // the age at which the oldest of the others ended
    std::size_t damaged = 0;          // dates that cannot be read, and why the first one cannot
    Status damage;
  };
  void look() PV2_EXCLUDES(core_.state_mutex);
  Result<Found> find(Duration age) PV2_EXCLUDES(core_.state_mutex);
  void mark_age() PV2_EXCLUDES(core_.state_mutex);
  /// Acknowledges the next batch of `expired_` in `slot`; with none left, closes the slot. The last
  /// slot that closes ends the look. On a pool thread.
  void acknowledge_some(std::size_t slot) PV2_EXCLUDES(core_.state_mutex);
  /// The answer for one result of the batch in `slot`, on any thread of the engine. The last answer
  /// of a batch begins the next one. A result whose answer is an error stays until the next look.
  void acknowledged(std::size_t slot, ProcedureId id, const Status& status)
      PV2_EXCLUDES(core_.state_mutex);
  void complain(const std::string& what);
  void look_again_in(Duration pause) PV2_EXCLUDES(core_.state_mutex);

  EngineCore& core_;
  Publisher& publisher_;
  Results& results_;
  std::function<void()> changed_;
  bool looking_ PV2_GUARDED_BY(core_.state_mutex) = false;
  SteadyTime next_look_ PV2_GUARDED_BY(core_.state_mutex) = SteadyTime::min();
  SteadyTime last_look_ PV2_GUARDED_BY(core_.state_mutex) = SteadyTime::min();
  // The look that is under way. Each slot has one batch on its way to the store. The thread that
  // takes an `unanswered_` to 0 goes on with that slot, and sees what the other answers wrote.
  static constexpr std::size_t kSlots = 2;
  Duration pause_{};  // to the next look
  std::vector<KeptResult> expired_;
  std::atomic<std::size_t> next_{0};  // the first of expired_ that is in no batch yet
  std::array<std::atomic<std::size_t>, kSlots> unanswered_{};
  std::atomic<std::size_t> open_slots_{0};
  std::atomic<bool> failed_{false};
  // Of who looks.
  Duration marked_{};
  std::size_t told_damaged_ = 0;  // dates
};

}  // namespace pv2
