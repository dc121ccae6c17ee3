// SPDX-License-Identifier: Apache-2.0
//
// Task: a call that is made later, once, perhaps on another thread. Unlike a std::function it is
// moved and never copied, so it may own what it needs. An answer to a caller fits into it without
// an allocation.

#pragma once

#include <pv2/base/assert.h>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace pv2 {

/// Owned by one thread at a time.
class Task {
 public:
  Task() = default;
  template <class Call>
  requires(!std::is_same_v<std::remove_cvref_t<Call>, Task> &&
           std::is_invocable_v<std::remove_cvref_t<Call>&>) Task(Call&& call) {
    using Stored = std::remove_cvref_t<Call>;
    if constexpr (kFits<Stored>) {
      new (&storage_) Stored(std::forward<Call>(call));
      verbs_ = &kInline<Stored>;
    } else {
      new (&storage_) Stored*(new Stored(std::forward<Call>(call)));
      verbs_ = &kOnHeap<Stored>;
    }
  }
  Task(Task&& other) noexcept { take(other); }
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      destroy();
      take(other);
    }
    return *this;
  }
  ~Task() { destroy(); }

  explicit operator bool() const noexcept { return verbs_ != nullptr; }
  void operator()() {
    PV2_ASSERT(verbs_ != nullptr, "a task that runs is not empty");
    verbs_->run(&storage_);
  }

 private:
  // Room for a callback of the host, which is a std::function, and its argument.
  static constexpr std::size_t kInlineBytes = 64;

  template <class Stored>
  static constexpr bool kFits =
      sizeof(Stored) <= kInlineBytes &&
      alignof(Stored) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<Stored>;

  struct Verbs {
    void (*run)(void* storage);
    void (*move)(void* from, void* to) noexcept;  // `from` ends
    void (*destroy)(void* storage) noexcept;
  };
  template <class Stored>
  static constexpr Verbs kInline{
      [](void* storage) { (*static_cast<Stored*>(storage))(); },
      [](void* from, void* to) noexcept {
        new (to) Stored(std::move(*static_cast<Stored*>(from)));
        std::destroy_at(static_cast<Stored*>(from));
      },
      [](void* storage) noexcept { std::destroy_at(static_cast<Stored*>(storage)); }};
  template <class Stored>
  static constexpr Verbs kOnHeap{
      [](void* storage) { (**static_cast<Stored**>(storage))(); },
      [](void* from, void* to) noexcept { new (to) Stored*(*static_cast<Stored**>(from)); },
      [](void* storage) noexcept { delete *static_cast<Stored**>(storage); }};

  void take(Task& other) noexcept {
    verbs_ = std::exchange(other.verbs_, nullptr);
    if (verbs_ != nullptr) verbs_->move(&other.storage_, &storage_);
  }
  void destroy() noexcept {
    if (verbs_ != nullptr) std::exchange(verbs_, nullptr)->destroy(&storage_);
  }

  const Verbs* verbs_ = nullptr;
  alignas(std::max_align_t) std::byte storage_[kInlineBytes];  // NOLINT: filled with verbs_
};

}  // namespace pv2
