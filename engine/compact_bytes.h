// SPDX-License-Identifier: Apache-2.0
//
// CompactBytes: a byte string in one word, for what a million waiting procedures carry and mostly
// leave empty. Empty: null; else one block that holds its size, its capacity and the bytes. A new
// value goes into the same block when it fits and does not waste it, so the image of a procedure
// whose steps change numbers is copied and not allocated.

#pragma once

#include <pv2/base/assert.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace pv2 {

/// Owned by whoever owns what it is a member of. Holds less than 4 GiB.
class CompactBytes {
 public:
  CompactBytes() = default;
  explicit CompactBytes(std::string_view bytes) { *this = bytes; }

  CompactBytes& operator=(std::string_view bytes) {
    PV2_ASSERT(bytes.size() <= UINT32_MAX, "a byte string of an execution is below 4 GiB");
    if (bytes.empty()) {
      block_.reset();
      return *this;
    }
    const auto size = static_cast<std::uint32_t>(bytes.size());
    Sizes sizes = read_sizes();
    const bool fits = size <= sizes.capacity && sizes.capacity - size <= kWasteMax;
    if (!fits) {
      // A new block first: `bytes` may be a view of the old one.
      auto block = std::make_unique_for_overwrite<char[]>(sizeof sizes + size);
      std::memcpy(block.get() + sizeof sizes, bytes.data(), size);
      block_ = std::move(block);
      sizes.capacity = size;
    } else {
      std::memmove(block_.get() + sizeof sizes, bytes.data(), size);
    }
    sizes.size = size;
    std::memcpy(block_.get(), &sizes, sizeof sizes);
    return *this;
  }

  [[nodiscard]] std::string_view view() const noexcept {
    return block_ ? std::string_view(block_.get() + sizeof(Sizes), read_sizes().size)
                  : std::string_view();
  }
  operator std::string_view() const noexcept { return view(); }
  [[nodiscard]] bool empty() const noexcept { return block_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return read_sizes().size; }
  void clear() noexcept { block_.reset(); }

 private:
  // What a value that became shorter may leave unused of its block.
  static constexpr std::uint32_t kWasteMax = 64;

  struct Sizes {
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
  };
  [[nodiscard]] Sizes read_sizes() const noexcept {
    Sizes sizes;
    if (block_) std::memcpy(&sizes, block_.get(), sizeof sizes);
    return sizes;
  }

  std::unique_ptr<char[]> block_;  // NOLINT(*-avoid-c-arrays): sizes, then the bytes
};

}  // namespace pv2
