// SPDX-License-Identifier: Apache-2.0
//
// Memory for what is made and destroyed with every procedure, often by two threads: one submits,
// another ends it. Each thread keeps some free blocks of each size, and hands them in batches to a
// common depot, where other threads take them. So a block costs a few instructions, where malloc
// and free take the lock of the arena that the other thread uses.

#pragma once

#include <cstddef>
#include <new>

namespace pv2 {

/// Larger blocks come from operator new each time.
inline constexpr std::size_t kCachedBlockMax = 504;

/// A block of at least `bytes`, aligned like one from operator new; throws std::bad_alloc. Any
/// thread may give it back, with the same number of bytes. What is kept for reuse is bounded: by
/// 64 blocks of each size per thread, and 256 KiB of each size in the depot. Under the sanitizers
/// for addresses and threads nothing is kept, so that they see each block end. Thread-safe.
[[nodiscard]] void* take_block(std::size_t bytes);
void give_block(void* block, std::size_t bytes) noexcept;

/// A base for classes whose objects are made and destroyed often. With a virtual destructor, the
/// objects of derived classes are kept too.
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

/// The same for the nodes of a standard container.
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
