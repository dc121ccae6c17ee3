// SPDX-License-Identifier: Apache-2.0
//
// Slabs: where blocks of memory of one size come from. A slab is 256 KiB of addresses that begin at
// a multiple of that, so a block tells by its own address in which slab it lies. Blocks lie side by
// side in the order in which they are first taken, with nothing between them. A slab whose blocks
// are all given back goes back to the system, except the last one of its size.
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

/// What a slab begins with.
struct Slab;

/// The slabs of one size. Guarded by its owner's mutex, except what is static. Never destroyed.
class Slabs {
 public:
  /// Blocks that were taken: a list, or, if they are fresh, side by side, and perhaps never
  /// touched.
  struct Run {
    char* first = nullptr;
    std::uint32_t count = 0;
    bool are_fresh = false;
  };

  /// Larger ones need fewer calls of the system, which matters only where very many blocks are
  /// taken and given in turns. But each size has one at least, and a block in use keeps a whole
  /// one.
  static constexpr std::size_t kSlabBytes = std::size_t{256} << 10;

  /// `block_bytes`: a multiple of 16.
  explicit constexpr Slabs(std::size_t block_bytes) noexcept : block_bytes_(block_bytes) {}
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  /// Takes 1 to `most` blocks. An empty run: no slab has room, so one has to be added.
  [[nodiscard]] Run take(std::uint32_t most) noexcept;
  /// Makes a list of blocks of this size that were taken. Needs no mutex.
  [[nodiscard]] static FreeBlock* list_of(const Run& run, std::size_t block_bytes) noexcept;
  /// Gives back a list of blocks of any slabs of this size. Returns a list of slabs of which no
  /// block is in use, and which are not among these any more.
  [[nodiscard]] Slab* give(FreeBlock* blocks) noexcept;
  /// Adds a slab without blocks in use. `memory` is from map(), or of a slab that was given back.
  void add(char* memory) noexcept;
  /// The bytes of all slabs.
  [[nodiscard]] std::size_t bytes() const noexcept { return count_ * kSlabBytes; }

  /// The memory for a slab; nullptr: the system gives none.
  [[nodiscard]] static char* map() noexcept;
  /// Gives the first slab of the list `unused` back to the system, and moves `unused` on. If the
  /// process has as many mappings as it may have, the system does not take it: then its memory is
  /// returned. It has no pages any more. Otherwise nullptr.
  [[nodiscard]] static char* unmap_first(Slab*& unused) noexcept;

 private:
  void link(Slab& slab) noexcept;
  void unlink(Slab& slab) noexcept;
  [[nodiscard]] bool has_room(Slab& slab) const noexcept;

  const std::size_t block_bytes_;
  Slab* with_room_ = nullptr;  // those from which blocks can be taken
  std::size_t count_ = 0;
};

/// kSlabBytes at a multiple of kSlabBytes, made of what `map_some` gives; nullptr if it gives none.
/// `map_some(n)` maps n bytes, a multiple of kSlabBytes.
[[nodiscard]] char* map_aligned(char* (*map_some)(std::size_t)) noexcept;

}  // namespace pv2
