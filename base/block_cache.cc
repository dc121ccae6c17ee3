// SPDX-License-Identifier: Apache-2.0
//
// For each size, a thread has a pile of loose blocks and at most one full batch. So a thread that
// takes and gives in turns visits the depot once per batch. A depot keeps some full batches. When
// it has none, its slabs give new blocks. A depot's mutex is the innermost one: a thread that holds
// it takes no other mutex.

#include "pv2/base/block_cache.h"

#include <pthread.h>

#include <array>
#include <cstdint>
#include <new>
#include <utility>

#include "pv2/base/mutex.h"
#include "pv2/base/sanitizers.h"
#include "slab.h"

namespace pv2 {
namespace {

#if defined(PV2_KEEP_BLOCKS)  // by the test of this file
constexpr bool kKeepsBlocks = true;
#else
constexpr bool kKeepsBlocks = !kAddressSanitizer && !kThreadSanitizer;
#endif

constexpr std::size_t kSizes = kCachedBlockMax / 16;
constexpr std::uint32_t kBatch = 32;
constexpr std::size_t kDepotBytes = std::size_t{256} << 10;

constexpr std::size_t size_number(std::size_t bytes) noexcept {
  return bytes <= 16 ? 0 : (bytes - 1) / 16;
}
constexpr std::size_t bytes_of_size(std::size_t number) noexcept { return (number + 1) * 16; }
static_assert(bytes_of_size(0) >= sizeof(FreeBlock));
static_assert(size_number(16) == 0 && size_number(17) == 1 &&
              size_number(kCachedBlockMax) == kSizes - 1 &&
              bytes_of_size(kSizes - 1) == kCachedBlockMax);

// The free batches and the slabs of one size. Never destroyed, because threads may end after
// main(). A depot has cache lines of its own.
struct alignas(64) Depot {
  explicit constexpr Depot(std::size_t block_bytes) noexcept
      : bytes(block_bytes), slabs(block_bytes) {}
  const std::size_t bytes;  // of a block
  Mutex mutex;
  FreeBlock* top PV2_GUARDED_BY(mutex) = nullptr;
  std::size_t batches PV2_GUARDED_BY(mutex) = 0;
  Slabs slabs PV2_GUARDED_BY(mutex);
};
template <std::size_t... kNumbers>
constexpr std::array<Depot, sizeof...(kNumbers)> make_depots(
    std::index_sequence<kNumbers...> /*numbers*/) noexcept {
  return {Depot(bytes_of_size(kNumbers))...};
}
constinit std::array<Depot, kSizes> depots = make_depots(std::make_index_sequence<kSizes>());

void lock_all() PV2_NO_THREAD_SAFETY_ANALYSIS {
  for (Depot& depot : depots) depot.mutex.lock();
}
void unlock_all() PV2_NO_THREAD_SAFETY_ANALYSIS {
  for (Depot& depot : depots) depot.mutex.unlock();
}
// The child of a fork() has one thread, the one that called it. That thread locks all depots before
// the fork and unlocks them in both processes. The handler that was registered last locks first. So
// this one is registered before those of the host, and locks the depots after the host's mutexes.
// If there is no memory to register it, a child may wait for a depot for ever.
[[gnu::constructor(101)]] void see_to_forks() {
  static_cast<void>(::pthread_atfork(lock_all, unlock_all, unlock_all));
}

void give_to_slabs(Depot& depot, FreeBlock* blocks) noexcept {
  Slab* unused = nullptr;
  {
    const MutexLock lock(depot.mutex);
    unused = depot.slabs.give(blocks);
  }
  while (unused != nullptr) {
    char* const left = Slabs::unmap_first(unused);
    if (left == nullptr) continue;
    const MutexLock lock(depot.mutex);
    depot.slabs.add(left);
  }
}

// Returns a list of 1 to kBatch blocks and sets `count`; nullptr if the system gives no memory.
// While this thread maps a slab, others may give blocks back. Then the new slab waits for the next
// call.
FreeBlock* take_list(Depot& depot, std::uint32_t& count) noexcept {
  char* memory = nullptr;
  for (;;) {
    Slabs::Run run;
    {
      const MutexLock lock(depot.mutex);
      if (memory != nullptr) depot.slabs.add(std::exchange(memory, nullptr));
      if (FreeBlock* const batch = depot.top; batch != nullptr) {
        depot.top = batch->next_batch;
        --depot.batches;
        count = kBatch;
        return batch;
      }
      run = depot.slabs.take(kBatch);
    }
    count = run.count;
    if (run.count != 0) return Slabs::list_of(run, depot.bytes);
    memory = Slabs::map();
    if (memory == nullptr) return nullptr;
  }
}

void give_batch(Depot& depot, FreeBlock* batch) noexcept {
  {
    const MutexLock lock(depot.mutex);
    if ((depot.batches + 1) * kBatch * depot.bytes <= kDepotBytes) {
      batch->next_batch = depot.top;
      depot.top = batch;
      ++depot.batches;
      return;
    }
  }
  give_to_slabs(depot, batch);
}

constexpr std::uint64_t kAny = UINT64_MAX;

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
  std::uint64_t left_for_tests = kAny;
};
thread_local constinit Piles piles;

// Gives away the free blocks of this thread.
void give_all_away() noexcept {
  for (std::size_t number = 0; number < kSizes; ++number) {
    const Pile pile = std::exchange(piles.of_size[number], {});
    if (pile.loose != nullptr) give_to_slabs(depots[number], pile.loose);
    if (pile.batch != nullptr) give_batch(depots[number], pile.batch);
  }
}

struct EndOfThread {
  ~EndOfThread() {
    give_all_away();
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

// Gives an empty pile blocks, or throws std::bad_alloc. A thread that is about to end gets one
// block.
void fill(Pile& pile, Depot& depot) {
  if (pile.batch != nullptr) {
    pile.loose = std::exchange(pile.batch, nullptr);
    pile.count = kBatch;
    return;
  }
  const bool are_few = piles.left_for_tests != kAny;
  if (are_few && piles.left_for_tests-- == 0) {
    piles.left_for_tests = 0;
    throw std::bad_alloc();
  }
  pile.loose = take_list(depot, pile.count);
  if (pile.loose == nullptr) throw std::bad_alloc();
  if (keeps_blocks() && !are_few) return;
  if (FreeBlock* const others = std::exchange(pile.loose->next, nullptr); others != nullptr) {
    give_to_slabs(depot, others);
  }
  pile.count = 1;
}

}  // namespace

FewBlocksForTests::FewBlocksForTests(std::uint64_t left) noexcept {
  give_all_away();
  piles.left_for_tests = left;
}

FewBlocksForTests::~FewBlocksForTests() { piles.left_for_tests = kAny; }

std::size_t slab_bytes_for_tests() noexcept {
  std::size_t bytes = 0;
  for (Depot& depot : depots) {
    const MutexLock lock(depot.mutex);
    bytes += depot.slabs.bytes();
  }
  return bytes;
}

void* take_block(std::size_t bytes) {
  if (!kKeepsBlocks || bytes > kCachedBlockMax) return ::operator new(bytes);
  const std::size_t number = size_number(bytes);
  Pile& pile = piles.of_size[number];
  if (pile.loose == nullptr) fill(pile, depots[number]);
  FreeBlock* const block = pile.loose;
  pile.loose = block->next;
  --pile.count;
  return block;
}

void give_block(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  if (!kKeepsBlocks || bytes > kCachedBlockMax) return ::operator delete(block);
  auto* const free_block = static_cast<FreeBlock*>(block);
  const std::size_t number = size_number(bytes);
  if (!keeps_blocks()) {
    free_block->next = nullptr;
    return give_to_slabs(depots[number], free_block);
  }
  Pile& pile = piles.of_size[number];
  if (pile.count == kBatch) {
    if (pile.batch != nullptr) give_batch(depots[number], pile.batch);
    pile.batch = pile.loose;
    pile.loose = nullptr;
    pile.count = 0;
  }
  free_block->next = pile.loose;
  pile.loose = free_block;
  ++pile.count;
}

}  // namespace pv2
