// SPDX-License-Identifier: Apache-2.0
//
// While the pool drains it still queues what its tasks post, so that tasks never nest.

#include "core/manual_pool.h"

#include "core/run_task.h"

namespace pv2 {

void ManualPool::post(Task task) {
  {
    MutexLock lock(tasks_mutex_);
    if (!stopped_ || draining_) {
      tasks_.push_back(std::move(task));
      return;
    }
  }
  run_task(engine_, task);
}

void ManualPool::post_all(std::span<Task> tasks) {
  for (Task& task : tasks) post(std::move(task));
}

bool ManualPool::run_one() {
  Task task;
  {
    MutexLock lock(tasks_mutex_);
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  run_task(engine_, task);
  return true;
}

std::size_t ManualPool::unfinished() const {
  MutexLock lock(tasks_mutex_);
  return tasks_.size();
}

void ManualPool::drain_and_stop() {
  {
    MutexLock lock(tasks_mutex_);
    stopped_ = draining_ = true;
  }
  do {
    while (run_one()) {
    }
  } while (!has_drained());
}

// Ends the draining if no task is queued, and returns whether it has ended. From then on post()
// runs its task on the calling thread instead of queueing it.
bool ManualPool::has_drained() {
  MutexLock lock(tasks_mutex_);
  if (tasks_.empty()) draining_ = false;
  return !draining_;
}

}  // namespace pv2
