// SPDX-License-Identifier: Apache-2.0
//
// Timers: fires the deadlines of the timer queue, on one thread of its own, or when the host's
// thread asks. A timer that fires only queues its procedure; of the host's code only the log sink
// runs here. With a real clock one asio timer waits for the next deadline; a manual clock tells the
// timers when it moves.

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "core/engine_core.h"
#include "core/start_gate.h"
#include "core/timed_work.h"

namespace pv2 {

/// Thread-safe.
class Timers {
 public:
  explicit Timers(EngineCore& core);
  ~Timers();

  /// Adds another part that has deadlines. Called before start(); `work` outlives the thread.
  void add(TimedWork& work) { others_.push_back(&work); }
  /// Makes the thread; it begins when `gate` is open. kResourceExhausted: no thread, or no
  /// descriptor, is left.
  Status make_thread(StartGate& gate);
  /// From now on earliest_moved() has an effect.
  void start();
  /// No timer fires after this has returned. Idempotent.
  void stop();

  /// The earliest deadline has changed.
  void earliest_moved();
  /// Queues every execution whose deadline has passed, and fires other due work. Returns the number
  /// of both together.
  std::size_t fire_due();

 private:
  class Thread;

  [[nodiscard]] std::optional<SteadyTime> earliest();
  /// Queues some of the executions whose deadline has passed.
  std::size_t fire_some(SteadyTime now) PV2_EXCLUDES(core_.state_mutex);

  EngineCore& core_;
  std::vector<TimedWork*> others_;
  std::unique_ptr<Thread> thread_;  // used only by the thread that starts and stops
  // For all other threads. Release and acquire: a reader sees the whole object.
  std::atomic<Thread*> running_{nullptr};
};

}  // namespace pv2
