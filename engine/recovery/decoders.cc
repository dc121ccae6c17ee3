// SPDX-License-Identifier: Apache-2.0
//
// Each task starts one more thread, until there are as many as there may be.

#include "recovery/decoders.h"

#include <pv2/base/thread.h>

#include <utility>

namespace pv2 {

Decoders::~Decoders() {
  {
    MutexLock lock(decoders_mutex_);
    over_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Decoders::run(Task task) {
  if (threads_.size() < most_) {
    auto thread = start_thread("pv2-decoder", "decoding the store", [this] { work(); });
    if (thread.ok()) threads_.push_back(*std::move(thread));
  }
  {
    MutexLock lock(decoders_mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

bool Decoders::help() {
  Task task;
  {
    MutexLock lock(decoders_mutex_);
    if (tasks_.empty()) return false;
    task = take();
  }
  task();
  return true;
}

void Decoders::work() {
  for (;;) {
    Task task;
    {
      MutexLock lock(decoders_mutex_);
      while (tasks_.empty() && !over_) changed_.wait(decoders_mutex_);
      if (over_) return;
      task = take();
    }
    task();
  }
}

Task Decoders::take() {
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

}  // namespace pv2
