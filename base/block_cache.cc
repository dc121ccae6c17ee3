// SPDX-License-Identifier: Apache-2.0
//
// The sizes are those that malloc can use without loss: 8 bytes more than a multiple of 16. For
// each size, a thread has a pile of loose blocks and at most one full batch. So a thread that takes
// and gives by turns goes to the depot once per batch. A thread never waits for the mutex of a
// depot: it may hold any other mutex, and after a fork() the owner may not exist in the child. It
// goes to operator new or delete instead.

#include "pv2/base/block_cache.h"

#include <atomic>
#include <cstdint>
#include <new>

#include "pv2/base/mutex.h"
#include "pv2/base/sanitizers.h"

namespace pv2 {
namespace {

#if defined(PV2_KEEP_BLOCKS)  // by the test of this file
constexpr bool kKeepsBlocks = true;
#else
constexpr bool kKeepsBlocks = !kAddressSanitizer && !kThreadSanitizer;
#endif

// A free block. The first one of a full batch in the depot also leads to the next batch.
struct FreeBlock {
  FreeBlock* next;
  FreeBlock* next_batch;
};

constexpr std::size_t kSizes = (kCachedBlockMax + 7) / 16 + 1;
constexpr std::uint32_t kBatch = 32;
constexpr std::size_t kDepotBytes = std::size_t{256} << 10;

constexpr std::size_t size_number(std::size_t bytes) noexcept {
  return bytes <= 24 ? 1 : (bytes + 7) / 16;
}
constexpr std::size_t bytes_of_size(std::size_t number) noexcept { return number * 16 + 8; }
static_assert(bytes_of_size(1) >= sizeof(FreeBlock));
static_assert(size_number(25) == 2 &&
              bytes_of_size(size_number(kCachedBlockMax)) == kCachedBlockMax);

// Full batches that threads have left for others. Never destroyed: threads may end after main().
struct Depot {
  Mutex mutex;
  // Written only under the mutex, and followed only by a thread that holds it. A look without it
  // is a hint, so relaxed is enough.
  std::atomic<FreeBlock*> top{nullptr};
  std::size_t batches PV2_GUARDED_BY(mutex) = 0;
};
constinit Depot depots[kSizes];

void free_all(FreeBlock* block) noexcept {
  while (block != nullptr) {
    FreeBlock* const next = block->next;
    ::operator delete(block);
    block = next;
  }
}

FreeBlock* take_batch(std::size_t number) noexcept {
  Depot& depot = depots[number];
  // While more and more objects are made it is empty: this look saves the mutex.
  if (depot.top.load(std::memory_order_relaxed) == nullptr) return nullptr;
  if (!depot.mutex.try_lock()) return nullptr;
  FreeBlock* const batch = depot.top.load(std::memory_order_relaxed);
  if (batch != nullptr) {
    depot.top.store(batch->next_batch, std::memory_order_relaxed);
    --depot.batches;
  }
  depot.mutex.unlock();
  return batch;
}

void give_batch(std::size_t number, FreeBlock* batch) noexcept {
  Depot& depot = depots[number];
  if (!depot.mutex.try_lock()) return free_all(batch);
  const bool has_room = (depot.batches + 1) * kBatch * bytes_of_size(number) <= kDepotBytes;
  if (has_room) {
    batch->next_batch = depot.top.load(std::memory_order_relaxed);
    depot.top.store(batch, std::memory_order_relaxed);
    ++depot.batches;
  }
  depot.mutex.unlock();
  if (!has_room) free_all(batch);
}

// The free blocks of one size that a thread has.
struct Pile {
  FreeBlock* loose = nullptr;
  std::uint32_t count = 0;  // of loose ones
  FreeBlock* batch = nullptr;
};

// Trivial to destroy, so that a thread that ends can use it until its last object is gone.
struct Piles {
  enum class State : std::uint8_t { kNew, kInUse, kOver };
  Pile of_size[kSizes];
  State state = State::kNew;
};
thread_local constinit Piles piles;

// At the end of the thread: gives its blocks away.
struct EndOfThread {
  ~EndOfThread() {
    for (std::size_t number = 0; number < kSizes; ++number) {
      Pile& pile = piles.of_size[number];
      free_all(pile.loose);
      if (pile.batch != nullptr) give_batch(number, pile.batch);
      pile = {};
    }
    piles.state = Piles::State::kOver;
  }
};

// False: this thread is about to end, and has given its blocks away.
bool keeps_blocks() noexcept {
  if (piles.state == Piles::State::kNew) {
    static thread_local EndOfThread end;
    (void)end;
    piles.state = Piles::State::kInUse;
  }
  return piles.state == Piles::State::kInUse;
}

}  // namespace

void* take_block(std::size_t bytes) {
  if (!kKeepsBlocks || bytes > kCachedBlockMax) return ::operator new(bytes);
  const std::size_t number = size_number(bytes);
  Pile& pile = piles.of_size[number];
  if (pile.loose == nullptr) {
    pile.loose = pile.batch != nullptr ? pile.batch : keeps_blocks() ? take_batch(number) : nullptr;
    pile.batch = nullptr;
    if (pile.loose == nullptr) return ::operator new(bytes_of_size(number));
    pile.count = kBatch;
  }
  FreeBlock* const block = pile.loose;
  pile.loose = block->next;
  --pile.count;
  return block;
}

void give_block(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  if (!kKeepsBlocks || bytes > kCachedBlockMax || !keeps_blocks()) {
    return ::operator delete(block);
  }
  const std::size_t number = size_number(bytes);
  Pile& pile = piles.of_size[number];
  if (pile.count == kBatch) {
    if (pile.batch != nullptr) give_batch(number, pile.batch);
    pile.batch = pile.loose;
    pile.loose = nullptr;
    pile.count = 0;
  }
  auto* const free_block = static_cast<FreeBlock*>(block);
  free_block->next = pile.loose;
  pile.loose = free_block;
  ++pile.count;
}

}  // namespace pv2
