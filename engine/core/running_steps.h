// SPDX-License-Identifier: Apache-2.0
//
// RunningSteps: which step each worker is running. Any thread may read it at any time and does not
// stop the worker. A worker notes the begin and the end of a step: a few atomic stores per step
// into memory of its own. A reader copies the values, and reads again if they changed during the
// copy.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/clock.h>
#include <pv2/base/ids.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace pv2 {

struct ProcedureType;

/// A step that a worker is in the middle of.
struct RunningStep {
  ProcedureId id;
  const ProcedureType* type = nullptr;
  std::uint32_t step = 0;
  bool undo = false;
  WallTime since{};
  std::uint64_t number = 0;  ///< Counts the steps of this worker: tells two runs apart.
};

/// What one worker does. begin() and end() are called by the worker, look() by any thread.
class alignas(64) WorkerActivity {
 public:
  void begin(ProcedureId id, const ProcedureType& type, std::uint32_t step, bool undo,
             WallTime since) noexcept {
    const Change change(version_);
    id_.store(id.value, std::memory_order_release);
    type_.store(&type, std::memory_order_release);
    step_.store(step, std::memory_order_release);
    undo_.store(undo, std::memory_order_release);
    since_.store(since.time_since_epoch().count(), std::memory_order_release);
    // Only this thread writes it.
    number_.store(number_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    running_.store(true, std::memory_order_release);
  }
  void end() noexcept {
    const Change change(version_);
    running_.store(false, std::memory_order_release);
  }

  /// The step that the worker runs now.
  [[nodiscard]] std::optional<RunningStep> look() const noexcept {
    for (;;) {
      const std::uint64_t before = version_.load(std::memory_order_acquire);
      const std::optional<RunningStep> seen = read();
      if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) return seen;
    }
  }

 private:
  // Makes the version odd while values change. Its stores need no fence: a reader that loads
  // (acquire) a value stored (release) after the odd version also sees that version, and reads
  // again.
  class Change {
   public:
    explicit Change(std::atomic<std::uint64_t>& version) noexcept : version_(version) {
      version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    ~Change() {
      version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    std::atomic<std::uint64_t>& version_;
  };

  [[nodiscard]] std::optional<RunningStep> read() const noexcept {
    if (!running_.load(std::memory_order_acquire)) return std::nullopt;
    RunningStep running;
    running.id = ProcedureId{id_.load(std::memory_order_acquire)};
    running.type = type_.load(std::memory_order_acquire);
    running.step = step_.load(std::memory_order_acquire);
    running.undo = undo_.load(std::memory_order_acquire);
    running.since = WallTime(Duration(since_.load(std::memory_order_acquire)));
    running.number = number_.load(std::memory_order_acquire);
    return running;
  }

  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::uint64_t> id_{0};
  std::atomic<bool> running_{false};
  std::atomic<bool> undo_{false};
  std::atomic<std::uint32_t> step_{0};
  std::atomic<const ProcedureType*> type_{nullptr};  // of the registry, which outlives the workers
  std::atomic<Duration::rep> since_{0};
  std::atomic<std::uint64_t> number_{0};
};

/// The activities of all workers. Thread-safe, like each of them.
class RunningSteps {
 public:
  explicit RunningSteps(std::size_t workers) {
    for (std::size_t i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<WorkerActivity>());
    }
  }
  [[nodiscard]] WorkerActivity& of(std::size_t worker) noexcept {
    PV2_ASSERT(worker < workers_.size(), "the index names a worker");
    return *workers_[worker];
  }
  [[nodiscard]] std::size_t size() const noexcept { return workers_.size(); }
  [[nodiscard]] std::optional<RunningStep> look(std::size_t worker) const noexcept {
    PV2_ASSERT(worker < workers_.size(), "the index names a worker");
    return workers_[worker]->look();
  }

 private:
  std::vector<std::unique_ptr<WorkerActivity>> workers_;
};

}  // namespace pv2
