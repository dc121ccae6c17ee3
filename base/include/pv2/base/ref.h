// SPDX-License-Identifier: Apache-2.0
//
// Ref<T>: one of several owners of an object that counts its owners itself. It is std::shared_ptr
// for objects of which there may be millions: a Ref is one word, and the count takes four bytes of
// the object and no block of its own. A plain pointer to the object can become a Ref again. There
// are no weak references; a list of pointers that does not own what it lists uses if_alive().

#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pv2 {

/// The base of an object that counts its references. The last one that goes destroys it, on its
/// thread. Made with make_ref(). Thread-safe.
class Counted {
 public:
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  /// Whether there is more than one reference. For a caller that has one, false is final unless a
  /// list asks if_alive(): nobody else has a reference to copy.
  [[nodiscard]] bool is_shared() const noexcept {
    return references_.load(std::memory_order_relaxed) > 1;
  }

 protected:
  Counted() = default;
  virtual ~Counted() = default;

 private:
  template <class T>
  friend class Ref;

  // Relaxed: the caller has a reference, so nothing is destroyed meanwhile.
  void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  bool add_reference_if_alive() noexcept {
    std::uint32_t seen = references_.load(std::memory_order_relaxed);
    while (seen != 0) {
      // Relaxed, as in add_reference(): the reference that was seen cannot be the last one to go.
      if (references_.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  // Release: what this owner did to the object is done before it is destroyed. Acquire: the thread
  // that destroys it sees what all others did.
  void drop_reference() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // Each reference is a word, so 4 billion of them do not fit the memory of a process that does
  // anything else.
  std::atomic<std::uint32_t> references_{0};
};

/// A reference to an object derived from Counted, or none. A Ref is owned by one thread at a time,
/// as a std::shared_ptr is.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) noexcept {}
  /// One more reference to an object that has one already, or none.
  explicit Ref(T* object) noexcept : object_(object) {
    if (object_ != nullptr) counted()->add_reference();
  }
  Ref(const Ref& other) noexcept : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <std::derived_from<T> Derived>
  Ref(Ref<Derived> other) noexcept : object_(other.detach()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) counted()->drop_reference();
  }

  /// A reference to `object`, or none if its last reference has gone. The caller sees to it that
  /// the destructor of `object` has not ended.
  [[nodiscard]] static Ref if_alive(T& object) noexcept {
    return static_cast<Counted&>(object).add_reference_if_alive() ? adopt(&object) : Ref();
  }
  /// The reference that detach() gave.
  [[nodiscard]] static Ref adopt(T* object) noexcept {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  /// Gives the reference to the caller, who gives it to adopt() one day.
  [[nodiscard]] T* detach() noexcept { return std::exchange(object_, nullptr); }

  [[nodiscard]] T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.object_ == b.object_; }
  friend bool operator==(const Ref& a, std::nullptr_t) noexcept { return a.object_ == nullptr; }

 private:
  [[nodiscard]] Counted* counted() const noexcept { return static_cast<Counted*>(object_); }

  T* object_ = nullptr;
};

/// Like std::make_shared().
template <class T, class... Arguments>
[[nodiscard]] Ref<T> make_ref(Arguments&&... arguments) {
  return Ref<T>(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace pv2
