// SPDX-License-Identifier: Apache-2.0
//
// OnDemand: one word that holds a value which most of its owners never have. The first write makes
// the value. A read before that sees a default value.

#pragma once

#include <pv2/base/block_cache.h>

#include <cstddef>
#include <memory>
#include <new>

namespace pv2 {

/// Owned by the object that contains it. What guards that object guards this too, and the word
/// itself: the first write changes it.
template <class T>
class OnDemand {
 public:
  [[nodiscard]] const T& operator*() const noexcept { return held_ ? held_->value : nothing(); }
  [[nodiscard]] const T* operator->() const noexcept { return &**this; }
  [[nodiscard]] bool is_made() const noexcept { return held_ != nullptr; }
  /// To write to it.
  [[nodiscard]] T& edit() {
    if (!held_) held_ = std::make_unique<Held>();
    return held_->value;
  }
  /// From here on a read sees a default value again.
  void reset() noexcept { held_.reset(); }

 private:
  struct Held : Recycled {
    T value;
  };

  // Never destroyed: an executor may be static, too. It lies in static storage, so the first read
  // needs no memory.
  static const T& nothing() noexcept {
    alignas(T) static std::byte place[sizeof(T)];
    static const T& value = *new (place) T();
    return value;
  }

  std::unique_ptr<Held> held_;
};

}  // namespace pv2
