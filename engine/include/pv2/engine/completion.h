// SPDX-License-Identifier: Apache-2.0
//
// Completion<T>: how work that takes time gets its value back into a procedure. A step starts the
// work and hands over a Completion; the code that finishes the work calls it, once, from any
// thread, and the step runs again with the value. The call runs no step on the caller's thread: it
// leaves the value and wakes the procedure. A value that arrives after the procedure has gone on,
// or after its executor is gone, is dropped.

#pragma once

#include <pv2/base/block_cache.h>
#include <pv2/base/ids.h>
#include <pv2/base/ref.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <typeinfo>
#include <utility>

namespace pv2 {

class AwaitSlot;

/// Wakes a procedure that waits. Implemented by the engine; may outlive it, and then does nothing.
/// Thread-safe.
class WakeTarget : public Counted {
 public:
  /// `slot` says which wait of which procedure is meant. It may be destroyed as soon as the
  /// procedure can run.
  virtual void wake(AwaitSlot& slot) noexcept = 0;
};

/// One thing a step waits for. Shared by the execution that waits and the code that completes it:
/// either may be gone first. Thread-safe.
class AwaitSlot : public Counted, public Recycled {
 public:
  AwaitSlot(Ref<WakeTarget> target, ProcedureId id, std::uint32_t epoch)
      : epoch_(epoch), target_(std::move(target)), id_(id) {}
  /// Where the value comes from; for explaining why a procedure waits.
  enum class Source : std::uint8_t {
    kCompletion,
    kOffload,
    kPutOff,    ///< Offloaded work that has not started: an earlier copy of it still runs.
    kNotBegun,  ///< A completion; what should have started the work has thrown.
  };
  void set_source(Source source) noexcept { source_ = source; }
  [[nodiscard]] Source source() const noexcept { return source_; }
  [[nodiscard]] bool is_of_offload() const noexcept {
    return source_ == Source::kOffload || source_ == Source::kPutOff;
  }

  /// Whether the value is there. Acquire: pairs with the release in arrived(), so the value is
  /// visible.
  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_acquire); }
  /// The procedure that waits, and which of its waits it is; a wake for a stale one is ignored. The
  /// number wraps after 4 billion waits; a procedure that is woken by mistake looks, finds nothing
  /// and waits on.
  [[nodiscard]] ProcedureId id() const noexcept { return id_; }
  [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_; }
  /// For the target, while the procedure cannot run yet: the wake for the value was made.
  void set_woken() noexcept { woken_.store(true, std::memory_order_release); }
  /// Never true of a slot whose value came by leave(). Acquire: what the wake did is visible.
  [[nodiscard]] bool has_woken() const noexcept { return woken_.load(std::memory_order_acquire); }
  /// The type of the value.
  [[nodiscard]] virtual const std::type_info& type() const noexcept = 0;

 protected:
  /// True for the first caller only; it then sets the value and calls arrived() or is_there(),
  /// or gives up.
  /// Acquire pairs with the release in give_up(): the next caller may use what the one that gave up
  /// has left.
  [[nodiscard]] bool claim() noexcept {
    return !claimed_.exchange(true, std::memory_order_acquire);
  }
  void give_up() noexcept { claimed_.store(false, std::memory_order_release); }
  void is_there() noexcept { ready_.store(true, std::memory_order_release); }
  void arrived() noexcept {
    // Once the value is there, the step may run on, and destroy the completion that is being
    // called.
    const Ref<AwaitSlot> self(this);
    is_there();
    target_->wake(*this);
  }

 private:
  std::uint32_t epoch_;  // first: it lies beside the count of references
  // Shared by the executor and by every slot that may be completed after the executor is gone.
  Ref<WakeTarget> target_;
  ProcedureId id_;
  std::atomic<bool> claimed_{false};
  std::atomic<bool> ready_{false};
  std::atomic<bool> woken_{false};
  // Written by the thread that has the procedure in flight; read by others while the procedure
  // waits.
  Source source_ = Source::kCompletion;
};

/// A slot with its value. Thread-safe: value() may be read once ready() has returned true.
template <class T>
class AwaitSlotOf final : public AwaitSlot {
 public:
  AwaitSlotOf(Ref<WakeTarget> target, ProcedureId id, std::uint32_t epoch)
      : AwaitSlot(std::move(target), id, epoch) {}
  ~AwaitSlotOf() override {
    if (ready()) std::destroy_at(std::addressof(value_));
  }

  void complete(T value) {
    if (take(std::move(value))) arrived();
  }
  /// Like complete(), but does not wake the procedure: the caller does that.
  void leave(T value) {
    if (take(std::move(value))) is_there();
  }
  [[nodiscard]] const T& value() const { return value_; }
  [[nodiscard]] const std::type_info& type() const noexcept override { return typeid(T); }

 private:
  bool take(T&& value) {
    if (!claim()) return false;
    try {
      std::construct_at(std::addressof(value_), std::move(value));
    } catch (...) {
      give_up();  // the caller may try again, with a value that can be moved
      throw;
    }
    return true;
  }

  // In a union, so that it is made later: it is there from ready() on.
  union {
    T value_;
  };
};

/// Call it once with the value. Later calls, and calls of copies, do nothing. A call throws only
/// what moving the value throws, and then counts as not made. One that was moved from drops
/// the value. Thread-safe.
template <class T>
class Completion {
 public:
  explicit Completion(Ref<AwaitSlotOf<T>> slot) : slot_(std::move(slot)) {}

  void operator()(T value) const {
    if (slot_) slot_->complete(std::move(value));
  }

  /// Whether somebody may still want the value. False, which is final, if the procedure has gone on
  /// and this is the only copy: for those who keep many completions, and may drop this one.
  [[nodiscard]] bool is_awaited() const noexcept { return slot_ && slot_->is_shared(); }

 private:
  Ref<AwaitSlotOf<T>> slot_;
};

}  // namespace pv2
