// SPDX-License-Identifier: Apache-2.0
//
// ManualPool: the pool without threads. Tasks of all kinds wait in one queue. A thread of the host
// runs them in order, with run_one().

#pragma once

#include <pv2/base/mutex.h>

#include <deque>
#include <span>
#include <utility>

#include "core/task_pool.h"

namespace pv2 {

/// Thread-safe.
class ManualPool final : public TaskPool {
 public:
  explicit ManualPool(const void* engine) : engine_(engine) {}

  void post(Task task) override PV2_EXCLUDES(tasks_mutex_);
  void post_blocking(Task task) override { post(std::move(task)); }
  void post_news(Task task) override { post(std::move(task)); }
  void post_all(std::span<Task> tasks) override;
  bool run_one() override PV2_EXCLUDES(tasks_mutex_);
  [[nodiscard]] std::size_t unfinished() const override PV2_EXCLUDES(tasks_mutex_);
  void drain_and_stop() override;

 private:
  bool has_drained() PV2_EXCLUDES(tasks_mutex_);

  const void* const engine_;
  mutable Mutex tasks_mutex_;
  std::deque<Task> tasks_ PV2_GUARDED_BY(tasks_mutex_);
  bool stopped_ PV2_GUARDED_BY(tasks_mutex_) = false;
  bool draining_ PV2_GUARDED_BY(tasks_mutex_) = false;
};

}  // namespace pv2
