// SPDX-License-Identifier: Apache-2.0
//
// For each size, a thread has a pile of loose blocks and at most one full batch. So a thread that
// takes and gives by turns goes to the depot once per batch. The depot has some full batches, and
// behind them the slabs. Its mutex is the innermost one: whoever has it takes no other.

#include "pv2/base/block_cache.h"

#include <pthread.h>

#include <array>
#include <atomic>
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

constexpr std::size_t kSizes = kCachedBlockMax / 16 + 1;
constexpr std::uint32_t kBatch = 32;
constexpr std::size_t kDepotBytes = std::size_t{256} << 10;

constexpr std::size_t size_number(std::size_t bytes) noexcept {
  return bytes <= 16 ? 1 : (bytes + 15) / 16;
}
constexpr std::size_t bytes_of_size(std::size_t number) noexcept { return number * 16; }
static_assert(bytes_of_size(1) >= sizeof(FreeBlock));
static_assert(bytes_of_size(kSizes - 1) == kCachedBlockMax);

// Full batches that threads have left for others, and the slabs. Never destroyed: threads may end
// after main().
struct Depot {
  explicit constexpr Depot(std::size_t bytes) noexcept : slabs(bytes) {}
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

// In the child of a fork() there is only the thread that called it. It gets the depots as they are
// when nobody has their mutexes.
void lock_all() PV2_NO_THREAD_SAFETY_ANALYSIS {
  for (Depot& depot : depots) depot.mutex.lock();
}
void unlock_all() PV2_NO_THREAD_SAFETY_ANALYSIS {
  for (Depot& depot : depots) depot.mutex.unlock();
}
// Whether that is seen to. If not, for want of memory, it is as with any mutex.
[[maybe_unused]] const bool sees_to_forks = ::pthread_atfork(lock_all, unlock_all, unlock_all) == 0;

void give_to_slabs(Depot& depot, FreeBlock* blocks) noexcept {
  Slab* unused = nullptr;
  {
    const MutexLock lock(depot.mutex);
    unused = depot.slabs.give(blocks);
  }
  Slabs::unmap_all(unused);
}

// A list of at most kBatch blocks, or of one. Without memory an empty one.
Slabs::Run take_list(std::size_t number, std::uint32_t most) noexcept {
  Depot& depot = depots[number];
  Slabs::Run run;
  {
    const MutexLock lock(depot.mutex);
    if (most == kBatch && depot.top != nullptr) {
      run = {depot.top, kBatch};
      depot.top = depot.top->next_batch;
      --depot.batches;
      return run;
    }
    run = depot.slabs.take(most);
  }
  if (!run.are_fresh) return run;
  char* const first = reinterpret_cast<char*>(run.first);
  for (std::uint32_t i = 0; i < run.count; ++i) {
    char* const block = first + i * bytes_of_size(number);
    char* const next = i + 1 < run.count ? block + bytes_of_size(number) : nullptr;
    reinterpret_cast<FreeBlock*>(block)->next = reinterpret_cast<FreeBlock*>(next);
  }
  return run;
}

void give_batch(std::size_t number, FreeBlock* batch) noexcept {
  Depot& depot = depots[number];
  Slab* unused = nullptr;
  {
    const MutexLock lock(depot.mutex);
    if ((depot.batches + 1) * kBatch * bytes_of_size(number) <= kDepotBytes) {
      batch->next_batch = depot.top;
      depot.top = batch;
      ++depot.batches;
      return;
    }
    unused = depot.slabs.give(batch);
  }
  Slabs::unmap_all(unused);
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
    if (pile.batch != nullptr) give_batch(number, pile.batch);
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

// One block at least. A thread that is about to end keeps none, so it takes no more than that.
void fill(Pile& pile, std::size_t number) {
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
  const Slabs::Run run = take_list(number, keeps_blocks() && !are_few ? kBatch : 1);
  if (run.count == 0) throw std::bad_alloc();
  pile.loose = run.first;
  pile.count = run.count;
}

}  // namespace

FewBlocksForTests::FewBlocksForTests(std::uint64_t left) noexcept {
  give_all_away();
  piles.left_for_tests = left;
}

FewBlocksForTests::~FewBlocksForTests() { piles.left_for_tests = kAny; }

std::size_t slab_bytes() noexcept {
  std::size_t bytes = 0;
  for (Depot& depot : depots) {
    const MutexLock lock(depot.mutex);
    bytes += depot.slabs.count() * Slabs::kSlabBytes;
  }
  return bytes;
}

void* take_block(std::size_t bytes) {
  if (!kKeepsBlocks || bytes > kCachedBlockMax) return ::operator new(bytes);
  const std::size_t number = size_number(bytes);
  Pile& pile = piles.of_size[number];
  if (pile.loose == nullptr) fill(pile, number);
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
    if (pile.batch != nullptr) give_batch(number, pile.batch);
    pile.batch = pile.loose;
    pile.loose = nullptr;
    pile.count = 0;
  }
  free_block->next = pile.loose;
  pile.loose = free_block;
  ++pile.count;
}

}  // namespace pv2
