// SPDX-License-Identifier: Apache-2.0
//
// Work queues: one that is run by hand, one with a thread.

#include "storage/work_queue.h"

#include <pv2/base/thread.h>

#include <utility>

namespace pv2::cluster {

bool ManualWorkQueue::run_one() {
  if (waiting_.empty()) return false;
  const std::function<void()> work = std::move(waiting_.front());
  waiting_.pop_front();
  work();
  return true;
}

void ManualWorkQueue::run_all() {
  while (run_one()) {
  }
}

Result<std::unique_ptr<ThreadWorkQueue>> ThreadWorkQueue::start(std::string_view name,
                                                                std::size_t threads) {
  std::unique_ptr<ThreadWorkQueue> queue(new ThreadWorkQueue);
  while (queue->threads_.size() < threads) {
    Result<std::thread> thread =
        start_thread("pv2-files", name, [&queue = *queue] { queue.loop(); });
    if (!thread.ok()) return thread.status();
    queue->threads_.push_back(*std::move(thread));
  }
  return queue;
}

ThreadWorkQueue::~ThreadWorkQueue() {
  {
    MutexLock lock(work_mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadWorkQueue::run(std::function<void()> work) {
  {
    MutexLock lock(work_mutex_);
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void ThreadWorkQueue::loop() {
  for (;;) {
    std::function<void()> work;
    {
      MutexLock lock(work_mutex_);
      while (waiting_.empty() && !stopping_) changed_.wait(work_mutex_);
      if (waiting_.empty()) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

}  // namespace pv2::cluster
