// SPDX-License-Identifier: Apache-2.0
//
// NewsQueue: durable facts for the listeners, in the order in which they were published. Its length
// is bounded: a listener that is too slow learns how many it has missed.

#pragma once

#include <pv2/base/status.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "pv2/engine/procedure_listener.h"

namespace pv2 {

struct Execution;

/// Guarded by the state mutex.
class NewsQueue {
 public:
  /// No news are made while `has_listeners` is false. Set once, before any thread runs.
  void set_listeners(const std::atomic<bool>& has_listeners) noexcept {
    has_listeners_ = &has_listeners;
  }
  /// Adds a fact about `execution`, if there are listeners.
  void add(ProcedureNews::Kind kind, const Execution& execution, Status error = {}) {
    if (has_listeners_->load(std::memory_order_relaxed)) push(kind, execution, std::move(error));
  }
  /// Whether the caller has to post the task that tells the listeners, after it has released the
  /// mutex. No second task is asked for before told().
  [[nodiscard]] bool claim_task() noexcept {
    if (queue_.empty() || is_task_posted_) return false;
    return is_task_posted_ = true;
  }
  /// Takes the `most` oldest facts.
  [[nodiscard]] std::vector<ProcedureNews> take(std::size_t most);
  /// The task has ended.
  void told() noexcept { is_task_posted_ = false; }

 private:
  void push(ProcedureNews::Kind kind, const Execution& execution, Status error);

  const std::atomic<bool>* has_listeners_ = nullptr;
  std::deque<ProcedureNews> queue_;
  std::uint64_t missed_ = 0;     // dropped since the last entry, because the queue was full
  bool is_task_posted_ = false;  // the task is on the pool and has not ended
};

}  // namespace pv2
