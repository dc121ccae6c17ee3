// SPDX-License-Identifier: Apache-2.0
//
// Expiry: acknowledges, in the host's place, the results that have been kept long enough, by the
// age of the store (EngineAge). A look reads the dates of results, oldest first, up to the first
// result that is young. It acknowledges what it found in bounded batches: while the store deletes
// one batch, a pool thread reads the rows of another.
//
// After a crash the next run finds the results again that were not deleted: the age is durable
// before any acknowledgement relies on it. A disk that cannot be read ends the look; the next one
// comes a minute later. A damaged result stays, but loses its date; a result that was set aside
// stays as it is.

#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "core/engine_core.h"
#include "core/timed_work.h"
#include "records/kept_result.h"

namespace pv2 {

class Publisher;
class Results;

/// Fired by one thread at a time.
class Expiry final : public TimedWork {
 public:
  Expiry(EngineCore& core, Publisher& publisher, Results& results)
      : core_(core), publisher_(publisher), results_(results) {}

  /// `changed` is called when the time of the next look has changed. Set once, before anything
  /// runs.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

  [[nodiscard]] std::optional<SteadyTime> next_due() override PV2_EXCLUDES(core_.state_mutex);
  std::size_t fire(SteadyTime now) override PV2_EXCLUDES(core_.state_mutex);

 private:
  struct Found {
    std::vector<KeptResult> expired;  // oldest first
    bool more = false;                // there may be more: the search has stopped at its limit
    std::optional<Duration> young;    // the date of the oldest young result
    std::size_t damaged = 0;          // dates that cannot be read
    Status damage;                    // why the first of them cannot be read
  };
  /// Whether a result with this date is not due to expire. With it all later dates are young.
  [[nodiscard]] bool is_young(const KeptResult& kept) const;
  /// One look, on a pool thread.
  void look() PV2_EXCLUDES(core_.state_mutex);
  /// The results that are too old.
  Result<Found> find() PV2_EXCLUDES(core_.state_mutex);
  [[nodiscard]] Found find_in_memory() PV2_EXCLUDES(core_.state_mutex);
  Result<Found> find_in_store() PV2_EXCLUDES(core_.state_mutex);
  void report_damage(const Found& found);
  /// How long the engine may wait for the next look if this one has acknowledged all it found.
  [[nodiscard]] Duration pause_after(const Found& found) const;
  /// Makes the age of the store durable.
  void mark_age() PV2_EXCLUDES(core_.state_mutex);
  /// Acknowledges `expired` in batches, several at a time.
  void acknowledge(std::vector<KeptResult> expired);
  /// Acknowledges the next batch of `expired_` in `slot`; with none left, closes the slot. The last
  /// slot that closes ends the look. On a pool thread.
  void acknowledge_some(std::size_t slot) PV2_EXCLUDES(core_.state_mutex);
  /// Gets the answer for one result of the batch in `slot`, on any thread of the engine. The last
  /// answer of a batch begins the next batch. A result whose answer is an error stays until the
  /// next look.
  void acknowledged(std::size_t slot, ProcedureId id, const Status& status)
      PV2_EXCLUDES(core_.state_mutex);
  void complain(const std::string& what);
  /// Ends the look.
  void look_again_in(Duration pause) PV2_EXCLUDES(core_.state_mutex);

  EngineCore& core_;
  Publisher& publisher_;
  Results& results_;
  std::function<void()> changed_;
  bool looking_ PV2_GUARDED_BY(core_.state_mutex) = false;
  SteadyTime next_look_ PV2_GUARDED_BY(core_.state_mutex) = SteadyTime::min();
  SteadyTime last_look_ PV2_GUARDED_BY(core_.state_mutex) = SteadyTime::min();
  // Of the look that is under way. Each slot has one batch on its way to the store. The thread that
  // counts an `unanswered_` down to 0 goes on with that slot, and sees what the other answers
  // wrote.
  static constexpr std::size_t kSlots = 2;
  Duration pause_{};  // to the next look
  std::vector<KeptResult> expired_;
  std::atomic<std::size_t> next_{0};  // index of the first of expired_ that is in no batch yet
  std::array<std::atomic<std::size_t>, kSlots> unanswered_{};
  std::atomic<std::size_t> open_slots_{0};
  std::atomic<bool> failed_{false};
  // Owned by the thread that looks.
  Duration marked_{};             // the age that was marked last
  std::size_t told_damaged_ = 0;  // damaged dates that the log has been told of
};

}  // namespace pv2
