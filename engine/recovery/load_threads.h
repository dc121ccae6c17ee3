// SPDX-License-Identifier: Apache-2.0
//
// LoadThreads: the threads that work for a load, beside the thread that owns them. They are started
// when there is work for them, so a small store is loaded without any, and end with the load. If
// the machine can start none, the owner does all of the work when it helps.

#pragma once

#include <pv2/base/mutex.h>

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "core/task.h"

namespace pv2 {

/// Owned by one thread, whose tasks they take.
class LoadThreads {
 public:
  /// Never more than `most` threads.
  explicit LoadThreads(std::size_t most) noexcept : most_(most) {}
  /// Waits for the tasks that run. Those that have not begun are destroyed.
  ~LoadThreads();
  LoadThreads(const LoadThreads&) = delete;
  LoadThreads& operator=(const LoadThreads&) = delete;

  /// Tasks begin in the order of their calls. A task must not throw.
  void run(Task task) PV2_EXCLUDES(load_tasks_mutex_);
  /// Runs the oldest task that has not begun on the calling thread. False: all have begun.
  bool help() PV2_EXCLUDES(load_tasks_mutex_);

 private:
  void work() PV2_EXCLUDES(load_tasks_mutex_);
  [[nodiscard]] Task take() PV2_REQUIRES(load_tasks_mutex_);

  const std::size_t most_;
  Mutex load_tasks_mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ PV2_GUARDED_BY(load_tasks_mutex_);
  bool over_ PV2_GUARDED_BY(load_tasks_mutex_) = false;
  std::vector<std::thread> threads_;  // of the owner; last, because they use the members above
};

}  // namespace pv2
