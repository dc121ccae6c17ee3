// SPDX-License-Identifier: Apache-2.0
//
// Slabs: where blocks of memory of one size come from. A slab is 256 KiB of addresses that begin at
// a multiple of 256 KiB. So the address of a block tells its slab. A slab hands its blocks out side
// by side, with nothing between them. When no block of a slab is in use, the slab goes back to the
// system. The last slab of a size stays.
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
  /// Blocks that were taken. Fresh ones lie side by side, and perhaps nobody has touched them yet.
  /// The others are a list.
  struct Run {
    char* first = nullptr;
    std::uint32_t count = 0;
    bool are_fresh = false;
  };

  /// A larger slab needs fewer calls of the system. That matters only where a thread takes and
  /// gives very many blocks in turns. But each size has at least one slab, and one block in use
  /// keeps a whole slab.
  static constexpr std::size_t kSlabBytes = std::size_t{256} << 10;

  /// `block_bytes`: a multiple of 16.
  explicit constexpr Slabs(std::size_t block_bytes) noexcept : block_bytes_(block_bytes) {}
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  /// Takes 1 to `most` blocks. An empty run means that no slab has room: the caller adds one.
  [[nodiscard]] Run take(std::uint32_t most) noexcept;
  /// Makes a list of the blocks of `run`. Needs no mutex.
  [[nodiscard]] static FreeBlock* list_of(const Run& run, std::size_t block_bytes) noexcept;
  /// Gives back a list of blocks, from any slabs of this size. Returns the slabs that it has
  /// removed because no block of them is in use: a list for unmap_first().
  [[nodiscard]] Slab* give(FreeBlock* blocks) noexcept;
  /// Adds a slab of which no block is in use. `memory` comes from map() or unmap_first().
  void add(char* memory) noexcept;
  /// The bytes of all slabs.
  [[nodiscard]] std::size_t bytes() const noexcept { return count_ * kSlabBytes; }

  /// Returns the memory for a slab, or nullptr if the system gives none.
  [[nodiscard]] static char* map() noexcept;
  /// Removes the first slab from the list `unused` and gives it back to the system. Returns
  /// nullptr. The system refuses if the process would then have too many mappings. In that case
  /// this returns the memory of the slab, which has lost its contents and its pages.
  [[nodiscard]] static char* unmap_first(Slab*& unused) noexcept;

 private:
  void link(Slab& slab) noexcept;
  void unlink(Slab& slab) noexcept;
  [[nodiscard]] bool has_room(Slab& slab) const noexcept;

  const std::size_t block_bytes_;
  Slab* with_room_ = nullptr;  // those from which blocks can be taken
  std::size_t count_ = 0;
};

/// Returns kSlabBytes bytes at a multiple of kSlabBytes, cut out of what `map_some` maps; nullptr
/// if `map_some` fails. `map_some(n)` maps n bytes, a multiple of kSlabBytes.
[[nodiscard]] char* map_aligned(char* (*map_some)(std::size_t)) noexcept;

}  // namespace pv2
