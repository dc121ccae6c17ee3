// SPDX-License-Identifier: Apache-2.0
//
// Blocks of memory for objects that are made and destroyed with every procedure. One thread often
// makes them and another one destroys them. Each thread keeps some free blocks of each size. It
// hands full batches of them to a common depot, from which other threads take them. So most blocks
// cost a few instructions, where malloc and free would take the lock of a shared arena. New blocks
// come from slabs (base/slab.h). Blocks that a thread takes in a row lie side by side.

#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace pv2 {

/// Larger blocks come from operator new each time.
inline constexpr std::size_t kCachedBlockMax = 512;

/// Returns a block of at least `bytes` bytes, aligned like one from operator new. Throws
/// std::bad_alloc. Any thread may give it back, with the same number of bytes. A thread keeps at
/// most 64 free blocks of each size, and the depot at most 256 KiB of each size. A slab of 256 KiB
/// goes back to the system when none of its blocks is in use or kept. Under the sanitizers for
/// addresses and threads each block comes from operator new, so that the sanitizers see it end.
/// Thread-safe.
[[nodiscard]] void* take_block(std::size_t bytes);
void give_block(void* block, std::size_t bytes) noexcept;

/// For tests: the bytes of all slabs, also of free blocks and of those that were never used.
[[nodiscard]] std::size_t slab_bytes_for_tests() noexcept;

/// For tests: while it lives, the calling thread gets `left` blocks, and then std::bad_alloc. One
/// at a time; not under the sanitizers.
class FewBlocksForTests {
 public:
  explicit FewBlocksForTests(std::uint64_t left) noexcept;
  ~FewBlocksForTests();
  FewBlocksForTests(const FewBlocksForTests&) = delete;
  FewBlocksForTests& operator=(const FewBlocksForTests&) = delete;
};

/// A base for classes whose objects are made and destroyed often: their memory comes from
/// take_block(). With a virtual destructor this holds for objects of derived classes, too.
class Recycled {
 public:
  static void* operator new(std::size_t bytes) { return take_block(bytes); }
  static void operator delete(void* object, std::size_t bytes) noexcept {
    give_block(object, bytes);
  }
  static void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
    try {
      return take_block(bytes);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  // Objects of a stricter alignment, and at a place that the caller has, as everywhere.
  static void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return ::operator new(bytes, alignment);
  }
  static void operator delete(void* object, std::size_t /*bytes*/,
                              std::align_val_t alignment) noexcept {
    ::operator delete(object, alignment);
  }
  static void* operator new(std::size_t /*bytes*/, void* place) noexcept { return place; }
  static void operator delete(void* /*object*/, void* /*place*/) noexcept {}
};

/// The same for the nodes of a standard container, or for a short vector; a longer one has its
/// memory from operator new.
template <class T>
class BlockAllocator {
 public:
  using value_type = T;

  BlockAllocator() = default;
  template <class Other>
  BlockAllocator(const BlockAllocator<Other>& /*other*/) noexcept {}

  [[nodiscard]] T* allocate(std::size_t count) {
    static_assert(alignof(T) <= alignof(std::max_align_t), "blocks have the usual alignment");
    return static_cast<T*>(take_block(count * sizeof(T)));
  }
  void deallocate(T* items, std::size_t count) noexcept { give_block(items, count * sizeof(T)); }

  friend bool operator==(BlockAllocator /*a*/, BlockAllocator /*b*/) noexcept { return true; }
};

}  // namespace pv2
