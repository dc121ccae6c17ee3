// SPDX-License-Identifier: Apache-2.0
//
// CompactBytes: a byte string in one word. A million waiting procedures carry such strings, and
// most of these are empty or short. Up to seven bytes lie in the word itself, marked by its lowest
// bit. For more, the word is the address of a block that holds size, capacity and the bytes. A new
// value goes into the same block if it fits and leaves little of it unused. So when the steps of a
// procedure only change numbers, its image is copied without an allocation.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/block_cache.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace pv2 {

/// Owned by the object that contains it. Holds less than 4 GiB.
class CompactBytes {
 public:
  CompactBytes() = default;
  explicit CompactBytes(std::string_view bytes) { *this = bytes; }
  CompactBytes(CompactBytes&& other) noexcept : word_(std::exchange(other.word_, 0)) {}
  CompactBytes& operator=(CompactBytes&& other) noexcept {
    CompactBytes(std::move(other)).swap(*this);
    return *this;
  }
  void swap(CompactBytes& other) noexcept { std::swap(word_, other.word_); }
  ~CompactBytes() { clear(); }

  /// `bytes` may be a view of this string.
  CompactBytes& operator=(std::string_view bytes) {
    PV2_ASSERT(bytes.size() <= UINT32_MAX, "a byte string of an execution is below 4 GiB");
    if (bytes.size() <= kInlineMax) {
      const std::uintptr_t word = inline_word(bytes);
      clear();
      word_ = word;
      return *this;
    }
    Sizes sizes{static_cast<std::uint32_t>(bytes.size()), capacity()};
    const bool fits = sizes.size <= sizes.capacity && sizes.capacity - sizes.size <= kWasteMax;
    if (!fits) {
      sizes.capacity = sizes.size;
      auto* const block = static_cast<char*>(take_block(sizeof sizes + sizes.size));
      std::memcpy(block + sizeof sizes, bytes.data(), sizes.size);
      clear();
      word_ = std::bit_cast<std::uintptr_t>(block);
    } else {
      PV2_ASSERT(has_block(), "a byte string with a capacity has a block");
      std::memmove(block() + sizeof sizes, bytes.data(), sizes.size);
    }
    std::memcpy(block(), &sizes, sizeof sizes);
    return *this;
  }

  [[nodiscard]] std::string_view view() const noexcept {
    if (word_ == 0) return {};
    if (is_inline()) return {reinterpret_cast<const char*>(&word_) + 1, (word_ & 0xFF) >> 1};
    Sizes sizes;
    std::memcpy(&sizes, block(), sizeof sizes);
    return {block() + sizeof sizes, sizes.size};
  }
  operator std::string_view() const noexcept { return view(); }
  [[nodiscard]] bool empty() const noexcept { return word_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return view().size(); }
  void clear() noexcept {
    if (has_block()) give_block(block(), sizeof(Sizes) + capacity());
    word_ = 0;
  }

 private:
  // The most bytes of its block that a shorter value may leave unused.
  static constexpr std::uint32_t kWasteMax = 64;
  // The lowest byte of the word holds the mark and the number of inline bytes.
  static constexpr std::size_t kInlineMax = sizeof(std::uintptr_t) - 1;
  static_assert(std::endian::native == std::endian::little, "the lowest byte is the first one");

  struct Sizes {
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
  };

  [[nodiscard]] bool is_inline() const noexcept { return (word_ & 1) != 0; }
  [[nodiscard]] bool has_block() const noexcept { return word_ != 0 && !is_inline(); }
  [[nodiscard]] char* block() const noexcept { return std::bit_cast<char*>(word_); }
  [[nodiscard]] std::uint32_t capacity() const noexcept {
    if (!has_block()) return 0;
    Sizes sizes;
    std::memcpy(&sizes, block(), sizeof sizes);
    return sizes.capacity;
  }
  static std::uintptr_t inline_word(std::string_view bytes) noexcept {
    if (bytes.empty()) return 0;
    std::uintptr_t word = (bytes.size() << 1) | 1;
    std::memcpy(reinterpret_cast<char*>(&word) + 1, bytes.data(), bytes.size());
    return word;
  }

  // 0 (empty), the address of a block (even, as all addresses from the heap are), or the inline
  // bytes.
  std::uintptr_t word_ = 0;
};

}  // namespace pv2
