// SPDX-License-Identifier: Apache-2.0
//
// A slab begins with a header of 64 bytes. Its blocks follow.

#include "slab.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#include "pv2/base/assert.h"

namespace pv2 {

struct Slab {
  const Slabs* owner;
  Slab* next = nullptr;      // in the list of slabs with room, or of unused slabs
  Slab* previous = nullptr;  // in the list of slabs with room; nullptr: it is the first one
  FreeBlock* free = nullptr;
  char* fresh = nullptr;   // no block from here on was ever taken
  std::uint32_t used = 0;  // blocks that are in use
};

namespace {

constexpr std::size_t kSlabBytes = Slabs::kSlabBytes;
constexpr std::size_t kHeaderBytes = 64;
static_assert(sizeof(Slab) <= kHeaderBytes);
static_assert(kHeaderBytes % __STDCPP_DEFAULT_NEW_ALIGNMENT__ == 0 &&
                  __STDCPP_DEFAULT_NEW_ALIGNMENT__ <= 16,
              "a block is aligned like one from operator new");

char* begin_of(Slab& slab) noexcept { return reinterpret_cast<char*>(&slab); }

// How far `address` is behind a multiple of the size of a slab.
std::size_t offset_of(const char* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) % kSlabBytes;
}

Slab& slab_of(FreeBlock* block) noexcept {
  char* const address = reinterpret_cast<char*>(block);
  return *reinterpret_cast<Slab*>(address - offset_of(address));
}

char* map_pages(std::size_t bytes) noexcept {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped);
}

}  // namespace

// The system usually puts a new mapping next to the last one. So the mapping after a slab is
// aligned, and the two become one mapping. If a mapping is not aligned, a slab is cut out of twice
// as many addresses. When the process has as many mappings as it may have, munmap() of the rest can
// fail. Then the process keeps the addresses of the rest, which use no memory.
char* map_aligned(char* (*map_some)(std::size_t)) noexcept {
  char* const exact = map_some(kSlabBytes);
  if (exact == nullptr || offset_of(exact) == 0) return exact;
  ::munmap(exact, kSlabBytes);
  char* const wide = map_some(2 * kSlabBytes);
  if (wide == nullptr) return nullptr;
  const std::size_t before = (kSlabBytes - offset_of(wide)) % kSlabBytes;
  if (before != 0) ::munmap(wide, before);
  ::munmap(wide + before + kSlabBytes, kSlabBytes - before);
  return wide + before;
}

char* Slabs::map() noexcept { return map_aligned(map_pages); }

char* Slabs::unmap_first(Slab*& unused) noexcept {
  char* const memory = begin_of(*unused);
  unused = unused->next;
  if (::munmap(memory, kSlabBytes) == 0) return nullptr;
  ::madvise(memory, kSlabBytes, MADV_DONTNEED);
  return memory;
}

bool Slabs::has_room(Slab& slab) const noexcept {
  return slab.free != nullptr || slab.fresh + block_bytes_ <= begin_of(slab) + kSlabBytes;
}

void Slabs::link(Slab& slab) noexcept {
  slab.previous = nullptr;
  slab.next = with_room_;
  if (with_room_ != nullptr) with_room_->previous = &slab;
  with_room_ = &slab;
}

void Slabs::unlink(Slab& slab) noexcept {
  (slab.previous != nullptr ? slab.previous->next : with_room_) = slab.next;
  if (slab.next != nullptr) slab.next->previous = slab.previous;
}

void Slabs::add(char* memory) noexcept {
  ++count_;
  auto* const slab = new (memory) Slab{.owner = this};
  slab->fresh = memory + kHeaderBytes;
  link(*slab);
}

// Blocks that were given back go first, because they have pages already.
Slabs::Run Slabs::take(std::uint32_t most) noexcept {
  Run run;
  if (with_room_ == nullptr) return run;
  Slab& slab = *with_room_;
  if (slab.free != nullptr) {
    run.first = reinterpret_cast<char*>(slab.free);
    FreeBlock* last = nullptr;
    for (; run.count < most && slab.free != nullptr; ++run.count) {
      last = slab.free;
      slab.free = last->next;
    }
    last->next = nullptr;
  } else {
    const auto left = static_cast<std::size_t>(begin_of(slab) + kSlabBytes - slab.fresh);
    run.first = slab.fresh;
    run.count = static_cast<std::uint32_t>(std::min<std::size_t>(most, left / block_bytes_));
    run.are_fresh = true;
    slab.fresh += run.count * block_bytes_;
  }
  slab.used += run.count;
  if (!has_room(slab)) unlink(slab);
  return run;
}

FreeBlock* Slabs::list_of(const Run& run, std::size_t block_bytes) noexcept {
  if (!run.are_fresh) return reinterpret_cast<FreeBlock*>(run.first);
  FreeBlock* list = nullptr;
  for (std::uint32_t left = run.count; left != 0; --left) {
    list = new (run.first + (left - 1) * block_bytes) FreeBlock{list, nullptr};
  }
  return list;
}

Slab* Slabs::give(FreeBlock* blocks) noexcept {
  Slab* unused = nullptr;
  while (blocks != nullptr) {
    FreeBlock* const block = std::exchange(blocks, blocks->next);
    Slab& slab = slab_of(block);
    PV2_ASSERT(slab.owner == this && slab.used != 0,
               "a block that is given back was taken, with the same size");
    if (!has_room(slab)) link(slab);
    block->next = slab.free;
    slab.free = block;
    if (--slab.used != 0 || count_ == 1) continue;
    unlink(slab);
    --count_;
    slab.next = unused;
    unused = &slab;
  }
  return unused;
}

}  // namespace pv2
