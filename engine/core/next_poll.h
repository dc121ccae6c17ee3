// SPDX-License-Identifier: Apache-2.0
//
// NextPoll: a worker that publishes at the end of its run, and then asks the scheduler for work,
// takes some of the procedures that it queues meanwhile. To wake a sleeping worker for these would
// cost 20 us: with a lock that many procedures want, once for each of them, to find nothing; and
// procedures whose records could share a sync would be in the runs of two workers.

#pragma once

#include <pv2/base/assert.h>

#include <cstddef>
#include <utility>

namespace pv2 {

/// A scope in which this thread works for `engine` and after which it polls, before it does
/// anything that may take long; or it gives up. Scopes nest: a step may run another engine.
class NextPoll {
 public:
  /// The poll takes up to `most` procedures; 0: this thread does not poll soon.
  NextPoll(const void* engine, std::size_t most) noexcept
      : engine_(most != 0 ? engine : nullptr),
        left_(most),
        outer_(std::exchange(innermost, this)) {}
  ~NextPoll() { innermost = outer_; }
  NextPoll(const NextPoll&) = delete;
  NextPoll& operator=(const NextPoll&) = delete;

  /// How many of the procedures that this thread queues in `engine` now it takes itself, at most.
  [[nodiscard]] static std::size_t takes_up_to(const void* engine) noexcept {
    const NextPoll* const scope = scope_of(engine);
    return scope != nullptr ? scope->left_ : 0;
  }
  /// It has queued `taken` procedures that it takes itself, no more than takes_up_to() has said.
  static void take(const void* engine, std::size_t taken) noexcept {
    if (taken == 0) return;
    NextPoll* const scope = scope_of(engine);
    PV2_ASSERT(scope != nullptr && taken <= scope->left_,
               "a scheduler leaves to its caller no more than the caller takes");
    scope->left_ -= taken;
    scope->has_taken_ = true;
  }
  /// Says that this thread does something before it polls that may take long. Returns whether it
  /// has taken procedures in this scope: then another worker is to be woken for them.
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
  std::size_t left_;
  NextPoll* outer_;
  bool has_taken_ = false;
};

}  // namespace pv2
