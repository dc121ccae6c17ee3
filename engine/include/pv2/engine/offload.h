// SPDX-License-Identifier: Apache-2.0
//
// Offloaded work: what StepContext::offload() gives to the pool. The work may be told to stop,
// which it may ignore, and may report progress. A procedure keeps its locks, and nothing of it is
// undone, until the work has returned and was destroyed. A program uses OffloadControl and
// OffloadOptions; the rest is for the engine.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/status.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>

#include "pv2/engine/completion.h"

namespace pv2 {

struct OffloadOptions {
  /// Whether the work may start while earlier work still runs: the piece that an earlier attempt at
  /// the same visit of the step offloaded at the same place. Otherwise it starts when that piece
  /// has ended.
  bool beside_earlier = false;
};

/// How a piece of offloaded work is told to stop and reports progress while it runs. Valid until
/// the work returns. Thread-safe.
class OffloadControl {
 public:
  /// A stop is requested when no step will take the value any more: the tree has failed or is
  /// aborted, the step has to be tried again (by its answer, by the engine or by an operator) or
  /// went on after its wait had timed out, its undo was parked, or the executor stops. The
  /// procedure waits for the work all the same; work that looks at this token ends sooner.
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_.get_token(); }
  /// Says that the work makes progress. The work counts as stuck when its last heartbeat was
  /// ExecutorOptions::stuck_after ago. Cheap.
  void heartbeat() noexcept {
    last_heartbeat_.store(clock_.steady_now().time_since_epoch().count(),
                          std::memory_order_relaxed);  // no other data depends on it
  }

  OffloadControl(const OffloadControl&) = delete;
  OffloadControl& operator=(const OffloadControl&) = delete;

  // For the engine.
  void request_stop() noexcept { stop_.request_stop(); }
  [[nodiscard]] std::optional<SteadyTime> last_heartbeat() const noexcept {
    const Duration::rep last = last_heartbeat_.load(std::memory_order_relaxed);
    return last == kNever ? std::nullopt : std::optional(SteadyTime(Duration(last)));
  }

 protected:
  explicit OffloadControl(const Clock& clock) : clock_(clock) {}
  ~OffloadControl() = default;

 private:
  static constexpr Duration::rep kNever = Duration::min().count();

  const Clock& clock_;  // the executor's; the executor waits for the work
  std::stop_source stop_;
  std::atomic<Duration::rep> last_heartbeat_{kNever};
};

namespace internal {

template <class R>
struct OffloadValue {
  using type = Result<R>;
};
template <>
struct OffloadValue<void> {
  using type = Status;
};
template <>
struct OffloadValue<Status> {
  using type = Status;
};
template <class T>
struct OffloadValue<Result<T>> {
  using type = Result<T>;
};

/// What a thrown exception becomes; call it inside a catch block.
Status status_of_current_exception(std::string_view what) noexcept;

/// Calls `work` with the argument that it takes, if any.
template <class Work>
decltype(auto) call_offloaded(Work& work, OffloadControl& control) {
  if constexpr (std::is_invocable_v<Work&, OffloadControl&>) {
    return work(control);
  } else if constexpr (std::is_invocable_v<Work&, std::stop_token>) {
    return work(control.stop_token());
  } else {
    static_assert(std::is_invocable_v<Work&>,
                  "offloaded work takes nothing, a std::stop_token or an OffloadControl&");
    return work();
  }
}

/// A callable of any type with the place for its value. Owned by one thread at a time.
class OffloadedWork : public OffloadControl {
 public:
  using OffloadControl::OffloadControl;
  virtual ~OffloadedWork() = default;
  /// Calls the callable and leaves the value where the step finds it. Wakes no procedure.
  virtual void run() noexcept = 0;
  /// Destroys the callable.
  virtual void destroy_callable() noexcept = 0;
};

template <class Work>
class OffloadedCall final : public OffloadedWork {
  using R = decltype(call_offloaded(std::declval<Work&>(), std::declval<OffloadControl&>()));

 public:
  using Value = typename OffloadValue<R>::type;

  OffloadedCall(const Clock& clock, Work work, Ref<AwaitSlotOf<Value>> slot)
      : OffloadedWork(clock), work_(std::move(work)), slot_(std::move(slot)) {}

  void run() noexcept override {
    try {  // the value may throw too, while it is moved to where the step finds it
      if constexpr (std::is_void_v<R>) {
        call_offloaded(*work_, *this);
        slot_->leave(Status());
      } else {
        slot_->leave(Value(call_offloaded(*work_, *this)));
      }
    } catch (...) {
      slot_->leave(Value(status_of_current_exception("offloaded work")));
    }
  }
  void destroy_callable() noexcept override { work_.reset(); }

 private:
  std::optional<Work> work_;
  Ref<AwaitSlotOf<Value>> slot_;  // shared with the step that waits, if it still does
};

}  // namespace internal
}  // namespace pv2
