// SPDX-License-Identifier: Apache-2.0
//
// Expiry: acknowledges, in the host's place, the results that have been kept long enough, by the
// age of the store (EngineAge). It reads their dates from the oldest on and stops at the first that
// is young. What it finds goes a bounded batch at a time: while the store deletes one, the rows of
// another are read. A crash before such an acknowledgement is durable leaves the result to the next
// run, which finds it too old again: the age is made durable before anything is deleted by it.

#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <vector>

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
  };
  void look() PV2_EXCLUDES(core_.state_mutex);
  Result<Found> find(Duration age) PV2_EXCLUDES(core_.state_mutex);
  void mark_age() PV2_EXCLUDES(core_.state_mutex);
  /// Acknowledges the next batch of what was found. When all of it is answered, the same turn takes
  /// the next; the turn that finds none left, as the last one, ends the look.
  void acknowledge_some(std::size_t turn) PV2_EXCLUDES(core_.state_mutex);
  /// One that failed (the disk could not be read) is tried again, after a pause.
  void acknowledged(std::size_t turn, ProcedureId id, const Status& status)
      PV2_EXCLUDES(core_.state_mutex);
  void complain(const std::string& what, const Status& status);
  void look_again_in(Duration pause) PV2_EXCLUDES(core_.state_mutex);

  EngineCore& core_;
  Publisher& publisher_;
  Results& results_;
  std::function<void()> changed_;
  bool looking_ PV2_GUARDED_BY(core_.state_mutex) = false;
  SteadyTime next_look_ PV2_GUARDED_BY(core_.state_mutex) = SteadyTime::min();
  SteadyTime last_look_ PV2_GUARDED_BY(core_.state_mutex) = SteadyTime::min();
  // Of the look that is under way. Each turn has one batch on its way, and who sees the last of it
  // answered goes on (release and acquire: he sees what failed).
  static constexpr std::size_t kTurns = 2;
  Duration pause_{};
  std::vector<KeptResult> expired_;
  std::atomic<std::size_t> next_{0};  // of expired_, which no turn has taken
  std::array<std::atomic<std::size_t>, kTurns> unanswered_{};
  std::atomic<std::size_t> turns_{0};
  std::atomic<bool> failed_{false};
  // Of who looks.
  Duration marked_{};
};

}  // namespace pv2
