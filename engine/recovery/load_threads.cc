// SPDX-License-Identifier: Apache-2.0
//
// Each task starts one more thread, until there are as many as there may be.

#include "recovery/load_threads.h"

#include <pv2/base/thread.h>

#include <utility>

namespace pv2 {

LoadThreads::~LoadThreads() {
  {
    MutexLock lock(load_tasks_mutex_);
    over_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void LoadThreads::run(Task task) {
  if (threads_.size() < most_) {
    auto thread = start_thread("pv2-loader", "loading the store", [this] { work(); });
    if (thread.ok()) threads_.push_back(*std::move(thread));
  }
  {
    MutexLock lock(load_tasks_mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

bool LoadThreads::help() {
  Task task;
  {
    MutexLock lock(load_tasks_mutex_);
    if (tasks_.empty()) return false;
    task = take();
  }
  task();
  return true;
}

void LoadThreads::work() {
  for (;;) {
    Task task;
    {
      MutexLock lock(load_tasks_mutex_);
      while (tasks_.empty() && !over_) changed_.wait(load_tasks_mutex_);
      if (over_) return;
      task = take();
    }
    task();
  }
}

Task LoadThreads::take() {
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

}  // namespace pv2
