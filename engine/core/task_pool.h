// SPDX-License-Identifier: Apache-2.0
//
// TaskPool: runs blocking work of steps and the host's callbacks, so that workers, committer and
// timer never do, except callbacks that do not block (core/host_calls.h). It has threads of its
// own, or none: then the host's thread runs the queued tasks in order (run_one).
//
// The tasks are code of the host and may block for any time. So no kind of task may take all
// threads from the other kinds:
//
//     blocking work (offloaded, chores)   may have all `threads`
//     callbacks                           may have all but one of these, and one of their own
//     listeners                           have one of their own
//
// So the host hears of a disk that hangs, even if all of its blocking work hangs on that disk. Work
// goes on while callbacks hang, and a listener that hangs delays listeners only. Callbacks share
// one queue: if as many hang as there are `threads`, all other callbacks wait.

#pragma once

#include <pv2/base/status.h>

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <memory>
#include <span>

#include "core/task.h"

namespace pv2 {

/// The tasks that one critical section wants run: one for a submission or an acknowledgement, many
/// for a list of records.
using TaskList = boost::container::small_vector<Task, 2>;

/// Thread-safe. A task that throws ends the process (core/run_task.h).
class TaskPool {
 public:
  virtual ~TaskPool() = default;
  /// For callbacks, and tasks of the engine.
  virtual void post(Task task) = 0;
  /// For the listeners: one task at a time, in order.
  virtual void post_news(Task task) = 0;
  /// For blocking work of the host.
  virtual void post_blocking(Task task) = 0;
  /// post() for several, in order; they are moved away.
  virtual void post_all(std::span<Task> tasks) = 0;
  /// Runs the oldest queued task on this thread. False: there is none, or the pool has threads.
  virtual bool run_one() { return false; }
  /// OK, or why some of its threads could not be started; then the caller destroys the pool.
  [[nodiscard]] virtual const Status& started() const noexcept {
    static const Status kFine;
    return kFine;
  }
  /// How many tasks run or are queued.
  [[nodiscard]] virtual std::size_t unfinished() const = 0;
  /// Returns when all queued tasks have ended. A task that is posted afterwards runs on the thread
  /// that posts it, so a caller of a stopped engine still gets its answer. Idempotent.
  virtual void drain_and_stop() = 0;

  /// With `threads` = 0, makes a pool without threads.
  static std::unique_ptr<TaskPool> make(unsigned threads, const void* engine);
};

/// Marks the calling thread as one of `engine`'s. Such a thread must not block on that engine.
/// Marks nest: a step may run another engine.
class EngineThread {
 public:
  /// A worker that takes any work has a seat, from 1. All other threads share the seat 0.
  static constexpr std::size_t kNoSeat = 0;

  explicit EngineThread(const void* engine, std::size_t seat = kNoSeat) noexcept;
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;
  [[nodiscard]] static bool belongs_to(const void* engine) noexcept;
  /// The seat of the calling thread in `engine`.
  [[nodiscard]] static std::size_t seat_in(const void* engine) noexcept;

 private:
  const void* engine_;
  std::size_t seat_;
  const EngineThread* outer_;
};

}  // namespace pv2
