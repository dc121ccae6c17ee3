// SPDX-License-Identifier: Apache-2.0
//
// Chores: periodic work of the host, in memory only. A chore that is due goes to the pool. Its next
// time counts from the end of that run, so a slow chore never runs twice at once and never falls
// behind.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/mutex.h>
#include <pv2/base/status.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/removable_call.h"
#include "core/timed_work.h"
#include "pv2/engine/registration.h"

namespace pv2 {

struct EngineCore;

/// Thread-safe. Owned by the engine; a Chore may hold it while it ends, even after the engine is
/// gone: remove() uses nothing of the engine.
class Chores final : public TimedWork, public internal::Registrations {
 public:
  explicit Chores(EngineCore& core) : core_(core) {}
  /// Sets a function that is called when a chore gets a new time, so that the timers look again.
  /// Called once, before any thread runs.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

  /// Returns the id for remove().
  Result<std::uint64_t> add(std::string name, Duration period, std::function<void()> work)
      PV2_EXCLUDES(chores_mutex_);
  void remove(std::uint64_t id) override PV2_EXCLUDES(chores_mutex_);

  [[nodiscard]] std::optional<SteadyTime> next_due() override PV2_EXCLUDES(chores_mutex_);
  std::size_t fire(SteadyTime now) override PV2_EXCLUDES(chores_mutex_);

 private:
  struct Periodic {
    std::uint64_t id = 0;
    std::string name;
    Duration period{};
    std::function<void()> work;
    std::optional<SteadyTime> due;  // none while it is on the pool; under chores_mutex_
    RemovableCall guard;
  };
  // Shared by the list and by a run on the pool: a chore may be removed while it runs.
  using Shared = std::shared_ptr<Periodic>;

  void run(const Shared& chore) PV2_EXCLUDES(chores_mutex_);

  EngineCore& core_;
  std::function<void()> changed_;
  // A hint that avoids taking the mutex: most hosts have no chores. add() makes the timers look
  // again.
  std::atomic<bool> any_{false};
  Mutex chores_mutex_;
  std::vector<Shared> chores_ PV2_GUARDED_BY(chores_mutex_);
  std::uint64_t last_id_ PV2_GUARDED_BY(chores_mutex_) = 0;
};

}  // namespace pv2
