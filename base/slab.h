// SPDX-License-Identifier: Apache-2.0
//
// Slabs: where blocks of memory of one size come from. A slab is 2 MiB of addresses that begin at a
// multiple of 2 MiB, so a block tells by its own address in which slab it lies. Blocks lie side by
// side in the order in which they are first taken, without anything between them; pages that no
// block was taken from use no memory. A slab whose blocks are all given back goes back to the
// system.
//
// (J. Bonwick: The Slab Allocator: An Object-Caching Kernel Memory Allocator, USENIX 1994.)

#pragma once

#include <cstddef>
#include <cstdint>

namespace pv2 {

/// A free block. The first one of a full batch in a depot also leads to the next batch.
struct FreeBlock {
  FreeBlock* next;
  FreeBlock* next_batch;
};

struct Slab;

/// The slabs of one size. Guarded by its owner's mutex. Never destroyed.
class Slabs {
 public:
  /// Blocks that were taken. `are_fresh`: they lie one behind the other from `first` on, are not
  /// linked, and were perhaps never touched.
  struct Run {
    FreeBlock* first = nullptr;
    std::uint32_t count = 0;
    bool are_fresh = false;
  };

  static constexpr std::size_t kSlabBytes = std::size_t{2} << 20;

  /// `block_bytes`: a multiple of 16.
  explicit constexpr Slabs(std::size_t block_bytes) noexcept : block_bytes_(block_bytes) {}
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  /// Takes 1 to `most` blocks; none if the system gives no memory.
  Run take(std::uint32_t most) noexcept;
  /// Gives back a list of blocks of any slabs of this size. Returns slabs that have no block any
  /// more, for unmap_all(), which needs no mutex.
  [[nodiscard]] Slab* give(FreeBlock* blocks) noexcept;
  static void unmap_all(Slab* slabs) noexcept;

  [[nodiscard]] std::size_t block_bytes() const noexcept { return block_bytes_; }
  /// How many slabs there are.
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  void link(Slab& slab) noexcept;
  void unlink(Slab& slab) noexcept;
  [[nodiscard]] bool has_room(const Slab& slab) const noexcept;
  Slab* map() noexcept;

  const std::size_t block_bytes_;
  Slab* with_room_ = nullptr;  // those from which blocks can be taken
  std::size_t count_ = 0;
};

}  // namespace pv2
