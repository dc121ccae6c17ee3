// SPDX-License-Identifier: Apache-2.0
//
// Decoders: the threads that decode records while a store is loaded. They are started when there is
// work for them, so a small store is loaded without any. If the machine can start none, their owner
// does all of the work when it helps.

#pragma once

#include <pv2/base/mutex.h>

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "core/task.h"

namespace pv2 {

/// Owned by one thread, which hands tasks to them.
class Decoders {
 public:
  /// Never more than `most` threads.
  explicit Decoders(std::size_t most) : most_(most) { threads_.reserve(most); }
  /// Waits for the tasks that run. Those that have not begun are destroyed.
  ~Decoders();
  Decoders(const Decoders&) = delete;
  Decoders& operator=(const Decoders&) = delete;

  /// Tasks begin in the order of their calls. A task must not throw.
  void run(Task task) PV2_EXCLUDES(decoders_mutex_);
  /// Runs the oldest task that has not begun on the calling thread. False: all have begun.
  bool help() PV2_EXCLUDES(decoders_mutex_);

 private:
  void work() PV2_EXCLUDES(decoders_mutex_);
  [[nodiscard]] Task take() PV2_REQUIRES(decoders_mutex_);

  const std::size_t most_;
  Mutex decoders_mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ PV2_GUARDED_BY(decoders_mutex_);
  bool over_ PV2_GUARDED_BY(decoders_mutex_) = false;
  std::vector<std::thread> threads_;  // of the owner; last, because they use the members above
};

}  // namespace pv2
