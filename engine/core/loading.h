// SPDX-License-Identifier: Apache-2.0
//
// Loading: whether the engine still loads what its store has (Load::kInBackground), and what waits
// until that is over. Meanwhile it accepts new procedures, and nothing runs.
//
// What concerns earlier procedures waits: a call that gives its answer later is made when loading
// is over (when_over()), a call that blocks waits (wait()), and a new procedure asks for no locks,
// because those that held locks before get theirs first (EngineState::held_back).

#pragma once

#include <pv2/base/mutex.h>

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/task.h"

namespace pv2 {

/// Thread-safe. Its state changes only under the engine's state mutex: a thread that holds that
/// mutex sees it as it is.
class Loading {
 public:
  /// Called before another thread knows of the engine. Without this call everything is loaded.
  void begin() noexcept { state_.store(State::kRuns, std::memory_order_relaxed); }
  /// Everything is in the tables now; or, if not `complete`, never will be: the engine has halted.
  /// Under the state mutex; release() has to follow without it.
  void end(bool complete) noexcept {
    state_.store(complete ? State::kOver : State::kGivenUp, std::memory_order_release);
  }
  /// Makes the calls that have waited, on the calling thread, in order.
  void release() PV2_EXCLUDES(loading_mutex_);

  [[nodiscard]] bool runs() const noexcept {
    return state_.load(std::memory_order_acquire) == State::kRuns;
  }
  /// Some of the store's procedures are not in the tables and never will be. The engine is
  /// unavailable then.
  [[nodiscard]] bool was_given_up() const noexcept {
    return state_.load(std::memory_order_acquire) == State::kGivenUp;
  }

  /// Calls `call` once: now, or when loading is over on the thread that loads.
  template <class Call>
  void when_over(Call call) PV2_EXCLUDES(loading_mutex_) {
    if (!runs()) return call();
    Task task(std::move(call));
    if (!put_off(task)) task();
  }
  /// Waits until loading is over. Not under a lock.
  void wait() PV2_EXCLUDES(loading_mutex_);

 private:
  enum class State : std::uint8_t { kOver, kRuns, kGivenUp };

  [[nodiscard]] bool put_off(Task& call) PV2_EXCLUDES(loading_mutex_);

  std::atomic<State> state_{State::kOver};
  Mutex loading_mutex_;
  CondVar over_;
  std::vector<Task> calls_ PV2_GUARDED_BY(loading_mutex_);
};

}  // namespace pv2
