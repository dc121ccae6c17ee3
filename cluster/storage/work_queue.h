// SPDX-License-Identifier: Apache-2.0
//
// WorkQueue: where the storage runs what takes long: syncs of logs, flushes, compactions. In
// production a queue has a thread; a simulation or a test runs the work itself, step by step.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/status.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

namespace pv2::cluster {

/// Thread-safe.
class WorkQueue {
 public:
  virtual ~WorkQueue() = default;
  /// Runs `work` later, never within this call. Work does not throw.
  virtual void run(std::function<void()> work) = 0;
};

/// Keeps the work until somebody runs it. For one thread.
class ManualWorkQueue final : public WorkQueue {
 public:
  void run(std::function<void()> work) override { waiting_.push_back(std::move(work)); }
  /// False: there was no work.
  bool run_one();
  /// Runs until there is none, including what the work itself adds.
  void run_all();
  /// Drops the work of a machine that has lost its power.
  void clear() { waiting_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }

 private:
  std::deque<std::function<void()>> waiting_;
};

/// One thread that runs the work in order, or several that begin it in order. The destructor first
/// runs what waits.
class ThreadWorkQueue final : public WorkQueue {
 public:
  /// `name` says what the threads are for, if they cannot be started.
  [[nodiscard]] static Result<std::unique_ptr<ThreadWorkQueue>> start(std::string_view name,
                                                                      std::size_t threads = 1);
  ~ThreadWorkQueue() override;
  void run(std::function<void()> work) override;

 private:
  ThreadWorkQueue() = default;
  void loop();

  Mutex work_mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> waiting_ PV2_GUARDED_BY(work_mutex_);
  bool stopping_ PV2_GUARDED_BY(work_mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace pv2::cluster
