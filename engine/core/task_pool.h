// SPDX-License-Identifier: Apache-2.0
//
// TaskPool: where blocking work of steps and the host's callbacks run, away from workers, committer
// and timer. Either threads of its own, or none: then the host's thread runs what is queued
// (run_one), in order.
//
// All of it is code of the host and may block for as long as it likes, so no kind of it may keep
// the others from a thread:
//
//     work that blocks (offloaded, chores)   may have all threads
//     callbacks                              may have all but one, and one of their own
//     listeners                              one of their own
//
// So the host hears of a disk that hangs, however much of its work hangs on that disk; work goes on
// while callbacks hang; and a listener that hangs holds up listeners only. Callbacks wait for each
// other when as many as there are threads hang, one kind of them for another: there is one queue.

#pragma once

#include <pv2/base/status.h>

#include <boost/container/small_vector.hpp>
#include <memory>
#include <span>

#include "core/task.h"

namespace pv2 {

/// What one critical section wants done: one call for whoever submits or acknowledges, many for a
/// unit of records.
using TaskList = boost::container::small_vector<Task, 2>;

/// Thread-safe. Tasks must not throw; what they throw is swallowed.
class TaskPool {
 public:
  virtual ~TaskPool() = default;
  /// For callbacks, and the engine's own.
  virtual void post(Task task) = 0;
  /// For the listeners: one task at a time, in order.
  virtual void post_news(Task task) = 0;
  /// For work of the host.
  virtual void post_blocking(Task task) = 0;
  /// post() for several, in order; they are moved away.
  virtual void post_all(std::span<Task> tasks) = 0;
  /// Runs the oldest queued task on this thread; false when there is none, or when threads do it.
  virtual bool run_one() { return false; }
  /// OK, or why it does not have all its threads; then it is of no use and is destroyed.
  [[nodiscard]] virtual const Status& started() const noexcept {
    static const Status kFine;
    return kFine;
  }
  /// How many tasks run or are queued.
  [[nodiscard]] virtual std::size_t unfinished() const = 0;
  /// Runs what is queued to its end; a task posted afterwards runs on the thread that posts it, so
  /// that whoever asks a stopped engine is answered. Idempotent.
  virtual void drain_and_stop() = 0;

  /// `threads` of 0 makes one without threads.
  static std::unique_ptr<TaskPool> make(unsigned threads, const void* engine);
};

/// Marks the calling thread as one of `engine`'s, where blocking on that engine would stop it.
/// Marks nest: a step may run another engine.
class EngineThread {
 public:
  explicit EngineThread(const void* engine) noexcept;
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;
  [[nodiscard]] static bool belongs_to(const void* engine) noexcept;

 private:
  const void* engine_;
  const EngineThread* outer_;
};

}  // namespace pv2
