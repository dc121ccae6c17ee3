// SPDX-License-Identifier: Apache-2.0
//
// LazyVector: a vector in one word, which is null until the first item is added. For lists that
// most executions never have. One block holds the number of items, the number that fits, and the
// items.

#pragma once
#include <pv2/base/assert.h>
#include <pv2/base/block_cache.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

namespace pv2 {

/// Owned by the object that contains it. The verbs are those of std::vector, but clear() frees the
/// memory.
template <class T>
class LazyVector {
  static_assert(std::is_trivially_copyable_v<T>, "items are moved as bytes");

 public:
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return read_sizes().size; }
  [[nodiscard]] T* begin() noexcept { return block_ ? items() : nullptr; }
  [[nodiscard]] T* end() noexcept { return begin() + size(); }
  [[nodiscard]] const T* begin() const noexcept { return block_ ? items() : nullptr; }
  [[nodiscard]] const T* end() const noexcept { return begin() + size(); }
  [[nodiscard]] T& operator[](std::size_t index) noexcept {
    PV2_ASSERT(index < size(), "the index names an item");
    return items()[index];
  }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept {
    PV2_ASSERT(index < size(), "the index names an item");
    return items()[index];
  }
  [[nodiscard]] T& back() noexcept {
    PV2_ASSERT(!empty(), "a list whose last item is used is not empty");
    return items()[size() - 1];
  }
  [[nodiscard]] const T& back() const noexcept {
    PV2_ASSERT(!empty(), "a list whose last item is used is not empty");
    return items()[size() - 1];
  }

  void reserve(std::size_t capacity) {
    const Sizes sizes = read_sizes();
    if (capacity <= sizes.capacity) return;
    auto* const block = static_cast<std::byte*>(take_block(bytes_for(capacity)));
    if (sizes.size != 0) {
      std::memcpy(block + kItemsAt, block_.get() + kItemsAt, sizes.size * kItemBytes);
    }
    block_.reset(block);
    write_sizes({sizes.size, static_cast<std::uint32_t>(capacity)});
  }
  void push_back(const T& item) {
    const T copy = item;  // `item` may lie in the block that reserve() replaces
    Sizes sizes = read_sizes();
    if (sizes.size == sizes.capacity)
      reserve(std::max<std::size_t>(4, sizes.size * std::size_t{2}));
    sizes = read_sizes();
    PV2_ASSERT(sizes.size < sizes.capacity, "there is room for another item");
    std::memcpy(block_.get() + kItemsAt + sizes.size * kItemBytes, &copy, kItemBytes);
    write_sizes({sizes.size + 1, sizes.capacity});
  }
  void pop_back() noexcept {
    const Sizes sizes = read_sizes();
    PV2_ASSERT(sizes.size != 0, "a list from which an item is taken is not empty");
    write_sizes({sizes.size - 1, sizes.capacity});
  }
  void clear() noexcept { block_.reset(); }

 private:
  struct Sizes {
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
  };
  static constexpr std::size_t kItemBytes = sizeof(T);  // NOLINT(bugprone-sizeof-expression)
  static constexpr std::size_t kItemsAt = std::max(sizeof(Sizes), alignof(T));

  static constexpr std::size_t bytes_for(std::size_t capacity) noexcept {
    return kItemsAt + capacity * kItemBytes;
  }
  struct GiveBlock {
    void operator()(std::byte* block) const noexcept {
      give_block(block, bytes_for(sizes_in(block).capacity));
    }
  };

  static Sizes sizes_in(const std::byte* block) noexcept {
    Sizes sizes;
    std::memcpy(&sizes, block, sizeof sizes);
    return sizes;
  }
  [[nodiscard]] Sizes read_sizes() const noexcept {
    return block_ ? sizes_in(block_.get()) : Sizes();
  }
  void write_sizes(Sizes sizes) noexcept { std::memcpy(block_.get(), &sizes, sizeof sizes); }
  [[nodiscard]] T* items() const noexcept { return reinterpret_cast<T*>(block_.get() + kItemsAt); }

  std::unique_ptr<std::byte, GiveBlock> block_;  // sizes, then the items
};

}  // namespace pv2
