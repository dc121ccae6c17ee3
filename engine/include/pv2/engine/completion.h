// SPDX-License-Identifier: Apache-2.0
//
// Completion<T>: the way back into a procedure for something that takes time. A step starts the
// work and hands over a Completion; whoever finishes calls it, once, from any thread, and the step
// runs again with the value. It never runs engine or user code in the caller's place: it leaves the
// value and wakes the procedure. A value that comes after the procedure has gone on, or after its
// executor is gone, is dropped.

#pragma once

#include <pv2/base/ids.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <typeinfo>
#include <utility>

namespace pv2 {

/// Wakes a procedure that waits. Implemented by the engine; outlives it harmlessly. Thread-safe.
class WakeTarget {
 public:
  virtual ~WakeTarget() = default;
  /// `epoch`: which wait of `id` is meant; a stale one is ignored. After 4 billion waits it comes
  /// round; who is woken for nothing looks, finds nothing and waits on.
  virtual void wake(ProcedureId id, std::uint32_t epoch) noexcept = 0;
};

/// One thing a step waits for. Thread-safe.
class AwaitSlot {
 public:
  AwaitSlot(std::shared_ptr<WakeTarget> target, ProcedureId id, std::uint32_t epoch)
      : target_(std::move(target)), id_(id), epoch_(epoch) {}
  virtual ~AwaitSlot() = default;
  /// Where its value comes from; for those who ask why a procedure waits.
  enum class Source : std::uint8_t {
    kCompletion,
    kOffload,
    kPutOff  ///< Offloaded work that has not started: an earlier copy of it still runs.
  };
  void set_source(Source source) noexcept { source_ = source; }
  [[nodiscard]] Source source() const noexcept { return source_; }
  AwaitSlot(const AwaitSlot&) = delete;
  AwaitSlot& operator=(const AwaitSlot&) = delete;

  /// Whether the value is there. Acquire: pairs with the release in arrived(), so the value is
  /// visible.
  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_acquire); }
  /// Of the value.
  [[nodiscard]] virtual const std::type_info& type() const noexcept = 0;

 protected:
  /// True for the first caller only, who then sets the value and calls arrived(), or gives up.
  /// Acquire and release: the next one may use what he who gave up has left.
  [[nodiscard]] bool claim() noexcept {
    return !claimed_.exchange(true, std::memory_order_acquire);
  }
  void give_up() noexcept { claimed_.store(false, std::memory_order_release); }
  void is_there() noexcept { ready_.store(true, std::memory_order_release); }
  void arrived() noexcept {
    is_there();
    target_->wake(id_, epoch_);
  }

 private:
  // Shared by the executor and by every slot that may still be completed after it is gone.
  std::shared_ptr<WakeTarget> target_;
  ProcedureId id_;
  std::uint32_t epoch_;
  std::atomic<bool> claimed_{false};
  std::atomic<bool> ready_{false};
  // Of whoever has the procedure in flight; read by others while it waits.
  Source source_ = Source::kCompletion;
};

/// A slot with its value. Thread-safe: value() may be read once ready() was true.
template <class T>
class AwaitSlotOf final : public AwaitSlot {
 public:
  using AwaitSlot::AwaitSlot;

  void complete(T value) {
    if (take(std::move(value))) arrived();
  }
  /// Like complete(), but wakes nobody: the caller does that.
  void leave(T value) {
    if (take(std::move(value))) is_there();
  }
  [[nodiscard]] const T& value() const { return *value_; }
  [[nodiscard]] const std::type_info& type() const noexcept override { return typeid(T); }

 private:
  bool take(T&& value) {
    if (!claim()) return false;
    try {
      value_.emplace(std::move(value));
    } catch (...) {
      give_up();  // who called may call again, with a value that can be moved
      throw;
    }
    return true;
  }

  std::optional<T> value_;
};

/// Call it once with the value. Later calls, and copies' calls, do nothing. It throws only what
/// moving the value throws; then it was not called. Thread-safe.
template <class T>
class Completion {
 public:
  // Shared by the execution that waits and by whoever completes it: either may be gone first.
  explicit Completion(std::shared_ptr<AwaitSlotOf<T>> slot) : slot_(std::move(slot)) {}

  void operator()(T value) const { slot_->complete(std::move(value)); }

 private:
  std::shared_ptr<AwaitSlotOf<T>> slot_;
};

}  // namespace pv2
