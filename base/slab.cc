// SPDX-License-Identifier: Apache-2.0
//
// A slab begins with what is known of it; its first block is one line of memory behind.

#include "slab.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "pv2/base/assert.h"

namespace pv2 {

struct Slab {
  Slab* next = nullptr;      // in the list of those with room, or of those to be unmapped
  Slab* previous = nullptr;  // nullptr: it is the first one
  FreeBlock* free = nullptr;
  char* fresh = nullptr;   // never taken from here on
  std::uint32_t used = 0;  // blocks that are taken
};

namespace {

constexpr std::size_t kSlabBytes = Slabs::kSlabBytes;
constexpr std::size_t kHeaderBytes = 64;
static_assert(sizeof(Slab) <= kHeaderBytes);

char* begin_of(const Slab& slab) noexcept {
  return const_cast<char*>(reinterpret_cast<const char*>(&slab));
}

char* map_bytes(std::size_t bytes) noexcept {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<char*>(mapped);
}

std::uintptr_t number_of(const char* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}

Slab& slab_of(FreeBlock* block) noexcept {
  char* const address = reinterpret_cast<char*>(block);
  return *reinterpret_cast<Slab*>(address - number_of(address) % kSlabBytes);
}

// The system puts a mapping next to the last one, so behind the first slab the next ones are
// aligned by themselves, and together one mapping to the system. Otherwise a slab is cut out of
// twice as many addresses.
char* map_aligned() noexcept {
  char* const exact = map_bytes(kSlabBytes);
  if (exact == nullptr || number_of(exact) % kSlabBytes == 0) return exact;
  ::munmap(exact, kSlabBytes);
  char* const wide = map_bytes(2 * kSlabBytes);
  if (wide == nullptr) return nullptr;
  const std::size_t before = (kSlabBytes - number_of(wide) % kSlabBytes) % kSlabBytes;
  if (before != 0) ::munmap(wide, before);
  ::munmap(wide + before + kSlabBytes, kSlabBytes - before);
  return wide + before;
}

}  // namespace

bool Slabs::has_room(const Slab& slab) const noexcept {
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

Slab* Slabs::map() noexcept {
  char* const memory = map_aligned();
  if (memory == nullptr) return nullptr;
  ++count_;
  auto* const slab = new (memory) Slab;
  slab->fresh = begin_of(*slab) + kHeaderBytes;
  link(*slab);
  return slab;
}

// Blocks that were given back first: they are in memory already.
Slabs::Run Slabs::take(std::uint32_t most) noexcept {
  Slab* const slab = with_room_ != nullptr ? with_room_ : map();
  if (slab == nullptr) return {};
  Run run;
  if (slab->free != nullptr) {
    run.first = slab->free;
    FreeBlock* last = nullptr;
    for (; run.count < most && slab->free != nullptr; ++run.count) {
      last = slab->free;
      slab->free = last->next;
    }
    last->next = nullptr;
  } else {
    const auto left = static_cast<std::size_t>(begin_of(*slab) + kSlabBytes - slab->fresh);
    run.first = reinterpret_cast<FreeBlock*>(slab->fresh);
    run.count = static_cast<std::uint32_t>(std::min<std::size_t>(most, left / block_bytes_));
    run.are_fresh = true;
    slab->fresh += run.count * block_bytes_;
  }
  slab->used += run.count;
  if (!has_room(*slab)) unlink(*slab);
  return run;
}

Slab* Slabs::give(FreeBlock* blocks) noexcept {
  Slab* unused = nullptr;
  while (blocks != nullptr) {
    FreeBlock* const next = blocks->next;
    Slab& slab = slab_of(blocks);
    PV2_ASSERT(slab.used != 0, "a block that is given back was taken");
    if (!has_room(slab)) link(slab);
    blocks->next = slab.free;
    slab.free = blocks;
    if (--slab.used == 0) {
      unlink(slab);
      --count_;
      slab.next = unused;
      unused = &slab;
    }
    blocks = next;
  }
  return unused;
}

void Slabs::unmap_all(Slab* slabs) noexcept {
  while (slabs != nullptr) {
    Slab* const next = slabs->next;
    ::munmap(static_cast<void*>(slabs), kSlabBytes);
    slabs = next;
  }
}

}  // namespace pv2
