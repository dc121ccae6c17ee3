// SPDX-License-Identifier: Apache-2.0
//
// OnDemand: a value in one word. It is made when it is written first; until then it reads like a
// value that was just made. For what most executions never have.

#pragma once

#include <pv2/base/block_cache.h>

#include <memory>

namespace pv2 {

/// Owned by the object that contains it, and guarded like it: the first write changes the word
/// itself.
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

 private:
  struct Held : Recycled {
    T value;
  };

  static const T& nothing() noexcept {
    static const T& value = *new T();  // never destroyed: an executor may be static, too
    return value;
  }

  std::unique_ptr<Held> held_;
};

}  // namespace pv2
