// SPDX-License-Identifier: Apache-2.0
//
// ThreadedPool: the pool with threads of its own. It has three queues: blocking work, callbacks,
// and news for listeners. `threads` of its threads take blocking work and callbacks. One more
// stands in for callbacks when the others may take none, and another one tells the listeners.

#pragma once

#include <pv2/base/mutex.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "core/task_pool.h"

namespace pv2 {

/// Thread-safe.
class ThreadedPool final : public TaskPool {
 public:
  ThreadedPool(unsigned threads, const void* engine);
  ~ThreadedPool() override { drain_and_stop(); }

  void post(Task task) override { post_all(std::span(&task, 1)); }
  void post_all(std::span<Task> tasks) override PV2_EXCLUDES(tasks_mutex_);
  void post_blocking(Task task) override PV2_EXCLUDES(tasks_mutex_);
  void post_news(Task task) override PV2_EXCLUDES(tasks_mutex_);
  [[nodiscard]] const Status& started() const noexcept override { return started_; }
  [[nodiscard]] std::size_t unfinished() const override PV2_EXCLUDES(tasks_mutex_);
  void drain_and_stop() override PV2_EXCLUDES(tasks_mutex_);

 private:
  // Threads that sleep. A thread claims a sleeper under the mutex before it wakes it, so that no
  // sleeper is woken twice. Guarded by tasks_mutex_.
  struct Sleepers {
    CondVar arrived;
    std::size_t sleeping = 0;
    std::size_t signalled = 0;

    std::size_t claim(std::size_t most);
    void sleep(Mutex& mutex) PV2_REQUIRES(mutex);
  };
  /// The kind of a task that one of the `threads` takes next, or took last.
  enum class Kind : std::uint8_t { kNothing, kWork, kCall };
  struct Next {
    Kind kind = Kind::kNothing;
    Task task;
  };

  void start(std::function<void()> run);
  void work() PV2_EXCLUDES(tasks_mutex_);
  [[nodiscard]] Next next_after(Kind ended) PV2_REQUIRES(tasks_mutex_);
  void count_ended(Kind ended) PV2_REQUIRES(tasks_mutex_);
  void stand_in() PV2_EXCLUDES(tasks_mutex_);
  void tell_news() PV2_EXCLUDES(tasks_mutex_);
  [[nodiscard]] bool needs_stand_in() const PV2_REQUIRES(tasks_mutex_);
  [[nodiscard]] bool may_call() const PV2_REQUIRES(tasks_mutex_);

  const void* const engine_;
  const std::size_t count_;  // threads that take blocking work and callbacks
  mutable Mutex tasks_mutex_;
  std::deque<Task> tasks_ PV2_GUARDED_BY(tasks_mutex_);     // callbacks
  std::deque<Task> blocking_ PV2_GUARDED_BY(tasks_mutex_);  // blocking work
  std::deque<Task> news_ PV2_GUARDED_BY(tasks_mutex_);
  std::size_t running_ PV2_GUARDED_BY(tasks_mutex_) = 0;  // tasks that run, of all kinds
  // How many of the `count_` threads are in work.
  std::size_t blocked_ PV2_GUARDED_BY(tasks_mutex_) = 0;
  // How many of the `count_` threads are in callbacks.
  std::size_t calling_ PV2_GUARDED_BY(tasks_mutex_) = 0;
  Sleepers sleepers_;
  Sleepers stand_in_;
  Sleepers teller_;
  bool telling_ PV2_GUARDED_BY(tasks_mutex_) = false;
  bool stopped_ PV2_GUARDED_BY(tasks_mutex_) = false;
  Status started_;                    // set by the constructor
  std::vector<std::thread> threads_;  // last, because the threads use the members above
};

}  // namespace pv2
