// SPDX-License-Identifier: Apache-2.0
//
// NextPoll: a worker that publishes at the end of its run, and then asks the scheduler for work,
// takes one of the procedures that it queues meanwhile. To wake a sleeping worker for that one
// would cost 20 us and find nothing: with a lock that many procedures want, once for each of them.

#pragma once

#include <utility>

namespace pv2 {

/// A scope in which this thread works for `engine` and after which it polls, before it does
/// anything that may take long. Scopes nest: a step may run another engine.
class NextPoll {
 public:
  NextPoll(const void* engine, bool polls) noexcept
      : engine_(polls ? engine : nullptr), outer_(std::exchange(innermost, this)) {}
  ~NextPoll() { innermost = outer_; }
  NextPoll(const NextPoll&) = delete;
  NextPoll& operator=(const NextPoll&) = delete;

  /// Whether this thread takes one of the procedures that it queues in `engine` now. True once in
  /// each scope: what it queues after that is for other workers.
  [[nodiscard]] static bool takes_one(const void* engine) noexcept {
    if (innermost == nullptr || innermost->engine_ != engine) return false;
    innermost->engine_ = nullptr;
    return true;
  }

 private:
  static inline constinit thread_local NextPoll* innermost = nullptr;

  const void* engine_;
  NextPoll* outer_;
};

}  // namespace pv2
