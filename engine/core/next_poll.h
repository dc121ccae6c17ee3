// SPDX-License-Identifier: Apache-2.0
//
// NextPoll: a worker that publishes at the end of its run, and then asks the scheduler for work,
// takes one of the procedures that it queues meanwhile. To wake a sleeping worker for that one
// would cost 20 us and find nothing: with a lock that many procedures want, once for each of them.

#pragma once

#include <utility>

namespace pv2 {

/// A scope in which this thread works for `engine` and after which it polls, before it does
/// anything that may take long; or it gives up. Scopes nest: a step may run another engine.
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
    NextPoll* const scope = scope_of(engine);
    return scope != nullptr && !std::exchange(scope->has_taken_, true);
  }
  /// Says that this thread does something before it polls that may take long. Returns whether it
  /// has taken a procedure in this scope: then another worker is to be woken for it.
  [[nodiscard]] static bool gives_up(const void* engine) noexcept {
    NextPoll* const scope = scope_of(engine);
    if (scope == nullptr) return false;
    scope->engine_ = nullptr;
    return scope->has_taken_;
  }

 private:
  static inline constinit thread_local NextPoll* innermost = nullptr;

  static NextPoll* scope_of(const void* engine) noexcept {
    return innermost != nullptr && innermost->engine_ == engine ? innermost : nullptr;
  }

  const void* engine_;  // nullptr: it does not poll soon
  NextPoll* outer_;
  bool has_taken_ = false;
};

}  // namespace pv2
