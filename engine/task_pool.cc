// SPDX-License-Identifier: Apache-2.0
//
// One queue; threads that take from it one by one, or a host that does.

#include "task_pool.h"

#include <pv2/base/mutex.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

namespace pv2 {
namespace {

thread_local const void* current_engine = nullptr;

void run_guarded(const void* engine, Task& task) noexcept {
  const EngineThread mark(engine);
  try {
    task();
  } catch (...) {  // NOLINT(bugprone-empty-catch): offloaded work catches its own; this is a host's
                   // callback
  }
}

class ThreadedPool final : public TaskPool {
 public:
  ThreadedPool(unsigned threads, const void* engine) : engine_(engine) {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~ThreadedPool() override { drain_and_stop(); }

  void post(Task task) override {
    bool wake = false;
    {
      MutexLock lock(tasks_mutex_);
      if (!stopped_) {
        tasks_.push_back(std::move(task));
        wake = claim_sleepers(1) != 0;
      }
    }
    if (wake) arrived_.notify_one();
    if (task) run_guarded(engine_, task);  // NOLINT(bugprone-use-after-move): stopped, still here
  }
  void post_all(std::span<Task> tasks) override {
    std::size_t wakes = 0;
    bool taken = false;
    {
      MutexLock lock(tasks_mutex_);
      taken = !stopped_;
      if (taken) {
        for (Task& task : tasks) tasks_.push_back(std::move(task));
        wakes = claim_sleepers(tasks.size());
      }
    }
    for (; wakes != 0; --wakes) arrived_.notify_one();
    if (taken) return;
    for (Task& task : tasks) run_guarded(engine_, task);
  }
  void drain_and_stop() override {
    {
      MutexLock lock(tasks_mutex_);
      stopped_ = true;
    }
    arrived_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  // One task at a time: it may block, and those behind it are for the other threads then.
  void work() {
    for (;;) {
      Task task;
      {
        MutexLock lock(tasks_mutex_);
        while (tasks_.empty() && !stopped_) {
          ++sleeping_;
          arrived_.wait(tasks_mutex_);
          // Whoever signals takes a sleeper off the count, so that nobody is signalled twice.
          if (signalled_ != 0) {
            --signalled_;
          } else {
            --sleeping_;
          }
        }
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      run_guarded(engine_, task);
    }
  }
  std::size_t claim_sleepers(std::size_t tasks) PV2_REQUIRES(tasks_mutex_) {
    const std::size_t claimed = std::min(tasks, sleeping_);
    sleeping_ -= claimed;
    signalled_ += claimed;
    return claimed;
  }

  const void* engine_;
  Mutex tasks_mutex_;
  CondVar arrived_;
  std::deque<Task> tasks_ PV2_GUARDED_BY(tasks_mutex_);
  std::size_t sleeping_ PV2_GUARDED_BY(tasks_mutex_) = 0;
  std::size_t signalled_ PV2_GUARDED_BY(tasks_mutex_) = 0;
  bool stopped_ PV2_GUARDED_BY(tasks_mutex_) = false;
  std::vector<std::thread> threads_;  // last: they use what stands above
};

class ManualPool final : public TaskPool {
 public:
  explicit ManualPool(const void* engine) : engine_(engine) {}

  void post(Task task) override {
    {
      MutexLock lock(tasks_mutex_);
      if (!stopped_) {
        tasks_.push_back(std::move(task));
        return;
      }
    }
    run_guarded(engine_, task);
  }
  void post_all(std::span<Task> tasks) override {
    for (Task& task : tasks) post(std::move(task));
  }
  bool run_one() override {
    Task task;
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
  std::deque<Task> tasks_ PV2_GUARDED_BY(tasks_mutex_);
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
