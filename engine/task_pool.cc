// SPDX-License-Identifier: Apache-2.0
//
// The threads are an asio thread pool; the variant without threads is a queue.

#include "task_pool.h"

#include <pv2/base/mutex.h>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>

namespace pv2 {
namespace {

thread_local const void* current_engine = nullptr;

void run_guarded(const void* engine, const std::function<void()>& task) noexcept {
  const EngineThread mark(engine);
  try {
    task();
  } catch (...) {  // NOLINT(bugprone-empty-catch): offloaded work catches its own; this is a host's
                   // callback
  }
}

class ThreadedPool final : public TaskPool {
 public:
  ThreadedPool(unsigned threads, const void* engine) : engine_(engine), pool_(threads) {}
  ~ThreadedPool() override { drain_and_stop(); }

  void post(std::function<void()> task) override {
    {
      MutexLock lock(stopped_mutex_);  // so that join() sees every task that was posted before it
      if (!stopped_) {
        boost::asio::post(pool_, [this, task = std::move(task)] { run_guarded(engine_, task); });
        return;
      }
    }
    run_guarded(engine_, task);
  }
  void drain_and_stop() override {
    {
      MutexLock lock(stopped_mutex_);
      stopped_ = true;
    }
    pool_.join();
  }

 private:
  const void* engine_;
  Mutex stopped_mutex_;
  bool stopped_ PV2_GUARDED_BY(stopped_mutex_) = false;
  boost::asio::thread_pool pool_;  // last: its tasks use what stands above
};

class ManualPool final : public TaskPool {
 public:
  explicit ManualPool(const void* engine) : engine_(engine) {}

  void post(std::function<void()> task) override {
    {
      MutexLock lock(tasks_mutex_);
      if (!stopped_) {
        tasks_.push_back(std::move(task));
        return;
      }
    }
    run_guarded(engine_, task);
  }
  bool run_one() override {
    std::function<void()> task;
    {
      MutexLock lock(tasks_mutex_);
      if (tasks_.empty()) return false;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    run_guarded(engine_, task);
    return true;
  }
  void drain_and_stop() override {
    {
      MutexLock lock(tasks_mutex_);
      stopped_ = true;
    }
    while (run_one()) {
    }
  }

 private:
  const void* engine_;
  Mutex tasks_mutex_;
  std::deque<std::function<void()>> tasks_ PV2_GUARDED_BY(tasks_mutex_);
  bool stopped_ PV2_GUARDED_BY(tasks_mutex_) = false;
};

}  // namespace

std::unique_ptr<TaskPool> TaskPool::make(unsigned threads, const void* engine) {
  if (threads == 0) return std::make_unique<ManualPool>(engine);
  return std::make_unique<ThreadedPool>(threads, engine);
}

EngineThread::EngineThread(const void* engine) noexcept : before_(current_engine) {
  current_engine = engine;
}
EngineThread::~EngineThread() { current_engine = before_; }
bool EngineThread::belongs_to(const void* engine) noexcept { return current_engine == engine; }

}  // namespace pv2
