// SPDX-License-Identifier: Apache-2.0
//
// Loading: how far the engine is with what its store has (Load::kInBackground), and what waits for
// that. Meanwhile it accepts new procedures, and nothing runs.
//
//     kReads   --all procedures are in the tables-->           kEnding
//     kEnding  --what has waited in the tables is seen to-->   kOver: the workers may begin
//     either   --the engine has halted-->                      kGivenUp
//
// Calls about earlier procedures wait. Waits for results stand in EngineState::early_waits. Other
// calls with a callback are put off until loading is over (when_over()), and calls that block wait
// until then (wait()). New procedures stand in EngineState::held_back. They ask for no locks,
// because procedures that held locks before get theirs first.

#pragma once

#include <pv2/base/mutex.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/task.h"
#include "model/reply.h"

namespace pv2 {

/// How many procedures, or calls that wait for them, a load handles in one section of the state
/// mutex. Callers who submit meanwhile wait for that mutex.
inline constexpr std::size_t kLoadSection = 128;

/// Thread-safe. Its state changes only under the engine's state mutex: a thread that holds that
/// mutex sees it as it is.
class Loading {
 public:
  enum class State : std::uint8_t { kOver, kReads, kEnding, kGivenUp };

  /// Called before another thread knows of the engine. Without this call everything is loaded.
  void begin() noexcept {
    at_work_.store(true, std::memory_order_relaxed);
    waits_for_release_.store(true, std::memory_order_relaxed);
    state_.store(State::kReads, std::memory_order_relaxed);
  }
  /// The thread that loads has ended.
  void left() noexcept { at_work_.store(false, std::memory_order_relaxed); }
  /// For messages.
  [[nodiscard]] bool is_at_work() const noexcept {
    return at_work_.load(std::memory_order_relaxed);
  }
  /// Under the state mutex. After kOver and kGivenUp, release() has to follow without it.
  void become(State next) noexcept { state_.store(next, std::memory_order_release); }
  /// Makes the calls that have waited, on the calling thread, in the order in which they came, and
  /// those that come meanwhile after them.
  void release() PV2_EXCLUDES(loading_mutex_);

  [[nodiscard]] State state() const noexcept { return state_.load(std::memory_order_acquire); }
  /// Everything is in the tables, and goes on unless the engine has halted.
  [[nodiscard]] bool is_complete() const noexcept { return state() == State::kOver; }
  /// It is not, yet.
  [[nodiscard]] bool runs() const noexcept {
    return state() == State::kReads || state() == State::kEnding;
  }
  /// Some of the store's procedures are not in the tables and never will be. The engine is
  /// unavailable then.
  [[nodiscard]] bool was_given_up() const noexcept { return state() == State::kGivenUp; }

  /// Gives `reply` to `call`, once: now, or when loading is over, on the thread that calls
  /// release(). No call overtakes another. A caller that blocks for the answer sleeps by then, so
  /// it is not left to write its request.
  template <class T, class Call>
  void when_over(Reply<T> reply, Call call) PV2_EXCLUDES(loading_mutex_) {
    if (!waits_for_release_.load(std::memory_order_acquire)) return call(std::move(reply));
    if (reply.on == ReplyOn::kWaitingCaller) reply.on = ReplyOn::kHere;
    Task task(
        [reply = std::move(reply), call = std::move(call)]() mutable { call(std::move(reply)); });
    if (!put_off(task)) task();
  }
  /// Waits until loading is over. Not under a lock, and not on a thread of the engine.
  void wait() PV2_EXCLUDES(loading_mutex_);

 private:
  [[nodiscard]] bool put_off(Task& call) PV2_EXCLUDES(loading_mutex_);

  std::atomic<State> state_{State::kOver};
  std::atomic<bool> at_work_{false};
  std::atomic<bool> waits_for_release_{false};  // changes to false under loading_mutex_
  Mutex loading_mutex_;
  CondVar over_;
  std::vector<Task> calls_ PV2_GUARDED_BY(loading_mutex_);
};

}  // namespace pv2
