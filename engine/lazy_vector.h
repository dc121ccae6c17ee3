// SPDX-License-Identifier: Apache-2.0
//
// LazyVector: a vector in one word, null while it is empty, for lists that most executions never
// have. Iterating over it costs one look more than over a std::vector.

#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace pv2 {

/// Owned by whoever owns what it is a member of. The verbs are those of std::vector.
template <class T>
class LazyVector {
 public:
  [[nodiscard]] bool empty() const noexcept { return items_ == nullptr || items_->empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return items_ == nullptr ? 0 : items_->size(); }
  [[nodiscard]] T* begin() noexcept { return items_ == nullptr ? nullptr : items_->data(); }
  [[nodiscard]] T* end() noexcept { return begin() + size(); }
  [[nodiscard]] const T* begin() const noexcept {
    return items_ == nullptr ? nullptr : items_->data();
  }
  [[nodiscard]] const T* end() const noexcept { return begin() + size(); }
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return (*items_)[index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept { return (*items_)[index]; }
  [[nodiscard]] T& back() noexcept { return items_->back(); }
  [[nodiscard]] const T& back() const noexcept { return items_->back(); }

  void push_back(T item) {
    if (!items_) items_ = std::make_unique<std::vector<T>>();
    items_->push_back(std::move(item));
  }
  void pop_back() noexcept { items_->pop_back(); }
  void clear() noexcept { items_.reset(); }

 private:
  std::unique_ptr<std::vector<T>> items_;
};

}  // namespace pv2
