// SPDX-License-Identifier: Apache-2.0
//
// Threads keep free blocks and hand them to each other. Two blocks in use never overlap, whichever
// threads took and gave them. A bound limits how many free blocks are kept. This program keeps them
// under the sanitizers, too, where the library keeps none.

#include <pthread.h>
#include <pv2/base/block_cache.h>
#include <pv2/base/sanitizers.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "slab.h"
#include "support/catch.h"

namespace pv2::test {
namespace {

constexpr std::size_t kSlabBytes = Slabs::kSlabBytes;

struct Block {
  unsigned char* at;
  std::size_t bytes;
  unsigned char mark;
};

Block marked(std::size_t bytes, unsigned char mark) {
  const Block block{static_cast<unsigned char*>(take_block(bytes)), bytes, mark};
  std::memset(block.at, mark, bytes);
  return block;
}

bool is_whole(const Block& block) {
  return std::all_of(block.at, block.at + block.bytes,
                     [&](unsigned char byte) { return byte == block.mark; });
}

std::vector<Block> blocks_of_all_sizes(std::size_t rounds) {
  std::vector<Block> blocks;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t bytes = 1; bytes <= kCachedBlockMax + 40; bytes += 13) {
      blocks.push_back(marked(bytes, static_cast<unsigned char>(blocks.size() % 251 + 1)));
    }
  }
  return blocks;
}

void give_all(const std::vector<Block>& blocks) {
  for (const Block& block : blocks) give_block(block.at, block.bytes);
}

}  // namespace

TEST_CASE("blocks in use do not overlap, and are aligned") {
  for (int again = 0; again < 3; ++again) {
    const std::vector<Block> blocks = blocks_of_all_sizes(100);
    CHECK(std::all_of(blocks.begin(), blocks.end(), is_whole));
    CHECK(std::all_of(blocks.begin(), blocks.end(), [](const Block& block) {
      return reinterpret_cast<std::uintptr_t>(block.at) % alignof(std::max_align_t) == 0;
    }));
    give_all(blocks);
  }
}

TEST_CASE("blocks that one thread took are given back by another") {
  std::vector<Block> first = blocks_of_all_sizes(200);
  std::vector<Block> second;
  std::vector<Block> third;
  // Each thread gives what the one before took, and ends with blocks that it keeps.
  std::thread([&] {
    second = blocks_of_all_sizes(200);
    give_all(first);
    third = blocks_of_all_sizes(200);
  }).join();
  first = blocks_of_all_sizes(200);
  CHECK(std::all_of(second.begin(), second.end(), is_whole));
  CHECK(std::all_of(third.begin(), third.end(), is_whole));
  CHECK(std::all_of(first.begin(), first.end(), is_whole));
  give_all(second);
  give_all(third);
  give_all(first);
}

TEST_CASE("threads that take and give at the same time have blocks of their own") {
  constexpr int kThreads = 4;
  std::array<bool, kThreads> whole{};
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&whole, number] {
      bool all = true;
      for (int round = 0; round < 20; ++round) {
        const std::vector<Block> blocks = blocks_of_all_sizes(10);
        all = all && std::all_of(blocks.begin(), blocks.end(), is_whole);
        give_all(blocks);
      }
      whole[static_cast<std::size_t>(number)] = all;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(whole == std::array<bool, kThreads>{true, true, true, true});
}

TEST_CASE("memory goes back to the system when all blocks in it are free") {
  constexpr std::size_t kCount = 50'000;
  const std::size_t before = slab_bytes_for_tests();
  std::vector<void*> blocks(kCount);
  for (void*& block : blocks) block = take_block(kCachedBlockMax);
  const std::size_t all = kCount * kCachedBlockMax;
  CHECK(slab_bytes_for_tests() >= all);
  CHECK(slab_bytes_for_tests() <= before + all + 2 * kSlabBytes);
  SECTION("in the order in which they were taken") {}
  SECTION("in the opposite order") { std::reverse(blocks.begin(), blocks.end()); }
  for (void* const block : blocks) give_block(block, kCachedBlockMax);
  // 256 KiB in the depot, and 64 blocks of this thread, lie in three slabs at most.
  CHECK(slab_bytes_for_tests() <= before + 3 * kSlabBytes);
}

TEST_CASE("blocks of a slab that others still use are taken again") {
  constexpr std::size_t kCount = 40'000;
  std::vector<void*> blocks(kCount);
  for (void*& block : blocks) block = take_block(200);
  const std::size_t full = slab_bytes_for_tests();
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < kCount; i += 2) give_block(blocks[i], 200);
    for (std::size_t i = 0; i < kCount; i += 2) blocks[i] = take_block(200);
  }
  CHECK(slab_bytes_for_tests() <= full + kSlabBytes);
  for (void* const block : blocks) give_block(block, 200);
}

TEST_CASE("blocks lie side by side in the order in which a thread takes them first") {
  std::vector<char*> blocks(21'000);
  for (char*& block : blocks) block = static_cast<char*>(take_block(304));
  // By now all that other tests have given back is in use.
  std::size_t neighbours = 0;
  for (std::size_t i = 20'001; i < blocks.size(); ++i) {
    neighbours += blocks[i] == blocks[i - 1] + 304;
  }
  CHECK(neighbours > 990);
  for (char* const block : blocks) give_block(block, 304);
}

TEST_CASE("a thread gives away the blocks that it has when it ends") {
  const std::size_t before = slab_bytes_for_tests();
  for (int i = 0; i < 1'000; ++i) {
    std::thread([] {
      std::array<void*, 95> blocks{};  // a batch for the depot, one of its own, and 31 loose ones
      for (void*& block : blocks) block = take_block(400);
      for (void* const block : blocks) give_block(block, 400);
    }).join();
  }
  CHECK(slab_bytes_for_tests() <= before + kSlabBytes);
}

TEST_CASE("a thread that is to get few blocks gets so many, and then bad_alloc") {
  give_all(blocks_of_all_sizes(2));
  std::vector<void*> blocks;
  const auto take = [&] { blocks.push_back(take_block(100)); };
  {
    const FewBlocksForTests few(2);
    REQUIRE_NOTHROW(take());
    REQUIRE_NOTHROW(take());
    REQUIRE_THROWS_AS(take(), std::bad_alloc);
    REQUIRE_THROWS_AS(take(), std::bad_alloc);
    give_block(blocks.back(), 100);
    blocks.pop_back();
    REQUIRE_NOTHROW(take());  // the one that it has just given
  }
  REQUIRE_NOTHROW(take());
  for (void* const block : blocks) give_block(block, 100);
}

// Where threads with a few blocks come and go, a slab that nobody uses for a moment is used again.
TEST_CASE("the last slab of a size stays, and no other one without a block in use") {
  Slabs slabs(144);
  for (int i = 0; i < 2; ++i) {
    char* const memory = Slabs::map();
    REQUIRE(memory != nullptr);
    slabs.add(memory);
  }
  std::vector<Slabs::Run> runs;
  while (true) {
    const Slabs::Run run = slabs.take(32);
    if (run.count == 0) break;
    runs.push_back(run);
  }
  CHECK(slabs.bytes() == 2 * kSlabBytes);

  std::size_t unmapped = 0;
  for (const Slabs::Run& run : runs) {
    Slab* unused = slabs.give(Slabs::list_of(run, 144));
    for (; unused != nullptr; ++unmapped) CHECK(Slabs::unmap_first(unused) == nullptr);
  }
  CHECK(unmapped == 1);
  CHECK(slabs.bytes() == kSlabBytes);
  CHECK(slabs.take(32).count == 32);
}

namespace {

// As many mappings as a process may have: 65 530, if nobody has allowed more. To unmap a part of
// one makes two of it, which the system then refuses.
class AllMappings {
 public:
  AllMappings() {
    mappings_.reserve(kMost);
    // Two neighbours of different kinds are two mappings.
    for (bool readable = false; mappings_.size() < kMost; readable = !readable) {
      void* const mapping = ::mmap(nullptr, kPage, readable ? PROT_READ : PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (mapping == MAP_FAILED) break;
      mappings_.push_back(mapping);
    }
  }
  AllMappings(const AllMappings&) = delete;
  AllMappings& operator=(const AllMappings&) = delete;
  ~AllMappings() {
    for (void* const mapping : mappings_) ::munmap(mapping, kPage);
  }
  // Somebody has allowed more than this test makes.
  [[nodiscard]] bool are_too_few() const { return mappings_.size() == kMost; }

 private:
  static constexpr std::size_t kMost = 100'000;
  static constexpr std::size_t kPage = 4096;
  std::vector<void*> mappings_;
};

std::size_t mapped_bytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

}  // namespace

// A sanitizer needs mappings for itself.
constexpr bool kMayTakeAllMappings = !kAddressSanitizer && !kThreadSanitizer;

TEST_CASE("a slab that the system does not take back is used again") {
  if (!kMayTakeAllMappings) return;
  // The second one and the fourth are in the middle of a mapping.
  constexpr std::size_t kAll = 6 * kSlabBytes;
  void* const all =
      ::mmap(nullptr, kAll, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(all != MAP_FAILED);
  char* const first =
      static_cast<char*>(all) + kSlabBytes - reinterpret_cast<std::uintptr_t>(all) % kSlabBytes;
  Slabs slabs(144);
  slabs.add(first + kSlabBytes);
  slabs.add(first + 3 * kSlabBytes);
  std::vector<Slabs::Run> runs;
  for (Slabs::Run run = slabs.take(32); run.count != 0; run = slabs.take(32)) runs.push_back(run);
  std::size_t refused = 0;
  {
    const AllMappings mappings;
    if (mappings.are_too_few()) {
      WARN("more than 100 000 mappings are allowed here: nothing is refused");
      return;
    }
    for (const Slabs::Run& run : runs) {
      for (Slab* unused = slabs.give(Slabs::list_of(run, 144)); unused != nullptr; ++refused) {
        char* const left = Slabs::unmap_first(unused);
        REQUIRE(left != nullptr);
        slabs.add(left);
      }
    }
  }
  CHECK(refused == 2);  // the first of them was a slab again, so the second one was not the last
  CHECK(slabs.bytes() == 2 * kSlabBytes);
  std::size_t blocks = 0;
  for (Slabs::Run run = slabs.take(32); run.count != 0; run = slabs.take(32)) blocks += run.count;
  CHECK(blocks == 2 * ((kSlabBytes - 64) / 144));
  CHECK(::munmap(all, kAll) == 0);
}

TEST_CASE("no memory is lost when the system does not take slabs back") {
  if (!kMayTakeAllMappings) return;
  std::vector<void*> blocks(30'000);
  const std::size_t before = mapped_bytes();
  for (void*& block : blocks) block = take_block(kCachedBlockMax);
  std::stable_partition(blocks.begin(), blocks.end(), [](void* block) {  // every second slab first
    return reinterpret_cast<std::uintptr_t>(block) / kSlabBytes % 2 == 0;
  });
  {
    const AllMappings mappings;
    for (void* const block : blocks) give_block(block, kCachedBlockMax);
  }
  for (void*& block : blocks) block = take_block(kCachedBlockMax);
  for (void* const block : blocks) give_block(block, kCachedBlockMax);
  CHECK(mapped_bytes() <= before + 8 * kSlabBytes);  // of 60
}

namespace {

std::size_t mapped = 0;

// As on a system that aligns nothing: one page behind a multiple of the size of a slab.
char* map_askew(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t all = bytes + 2 * kSlabBytes;
  void* const got =
      ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  char* const from = static_cast<char*>(got);
  const std::size_t behind = reinterpret_cast<std::uintptr_t>(from) % kSlabBytes;
  const std::size_t before = kSlabBytes - behind + page;
  ::munmap(from, before);
  ::munmap(from + before + bytes, all - before - bytes);
  mapped = bytes;
  return from + before;
}

}  // namespace

TEST_CASE("a slab is aligned, also where mappings are not") {
  char* const slab = map_aligned(map_askew);
  REQUIRE(slab != nullptr);
  CHECK(mapped == 2 * kSlabBytes);
  CHECK(reinterpret_cast<std::uintptr_t>(slab) % kSlabBytes == 0);
  std::memset(slab, 1, kSlabBytes);
  // Nothing is left before and behind it.
  CHECK(::msync(slab - 4096, 4096, MS_ASYNC) != 0);
  CHECK(::msync(slab + kSlabBytes, 4096, MS_ASYNC) != 0);
  CHECK(::munmap(slab, kSlabBytes) == 0);
}

namespace {

// The mutex of a host, which a thread holds while it calls the engine, and which the host's own
// handlers hold during a fork.
std::mutex host_mutex;

[[gnu::constructor(102)]] void register_host() {
  const int error = ::pthread_atfork([] { host_mutex.lock(); }, [] { host_mutex.unlock(); },
                                     [] { host_mutex.unlock(); });
  if (error != 0) std::abort();
}

}  // namespace

TEST_CASE("a fork waits for a host's mutex that a thread holds while it takes blocks") {
  std::atomic<bool> done = false;
  std::thread busy([&] {
    std::array<void*, 200> blocks{};
    for (; !done.load(); std::this_thread::yield()) {
      const std::lock_guard<std::mutex> lock(host_mutex);
      for (void*& block : blocks) block = take_block(100);
      for (void* const block : blocks) give_block(block, 100);
    }
  });
  ::alarm(60);  // ends this program if the two wait for each other
  int failed = 0;
  for (int i = 0; i < 200; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) ++failed;
  }
  ::alarm(0);
  done = true;
  busy.join();
  CHECK(failed == 0);
}

TEST_CASE("the child of a fork takes and gives blocks, whatever other threads did at that moment") {
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!done.load()) give_all(blocks_of_all_sizes(100));
    });
  }
  int failed = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);                      // ends it if it waits for a mutex that nobody releases
      std::array<void*, 100> blocks{};  // more than a thread has free
      for (std::size_t bytes = 16; bytes <= kCachedBlockMax; bytes += 16) {
        for (void*& block : blocks) block = take_block(bytes);
        for (void* const block : blocks) give_block(block, bytes);
      }
      ::_exit(0);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) ++failed;
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 0);
}

TEST_CASE(
    "an object of a derived class, of a strict alignment, or in a given place is where it is") {
  struct Base : Recycled {
    virtual ~Base() = default;
    std::uint64_t number = 1;
  };
  struct Derived : Base {
    std::array<std::uint64_t, 20> more{};
  };
  struct alignas(128) Strict : Base {
    std::uint64_t value = 7;
  };
  std::vector<std::unique_ptr<Base>> objects;
  for (int i = 0; i < 100; ++i) {
    objects.push_back(std::make_unique<Derived>());
    objects.push_back(std::make_unique<Strict>());
    CHECK(reinterpret_cast<std::uintptr_t>(objects.back().get()) % 128 == 0);
  }
  CHECK(std::all_of(objects.begin(), objects.end(),
                    [](const auto& object) { return object->number == 1; }));
  alignas(Derived) std::array<std::byte, sizeof(Derived)> place{};
  delete new (std::nothrow) Derived();
  auto* const there = new (place.data()) Derived();
  CHECK(static_cast<void*>(there) == place.data());
  there->~Derived();
}

TEST_CASE("the nodes of a list come from the blocks") {
  std::list<std::uint64_t, BlockAllocator<std::uint64_t>> numbers;
  for (std::uint64_t i = 0; i < 1000; ++i) numbers.push_back(i);
  auto moved = std::move(numbers);
  CHECK(moved.size() == 1000);
  CHECK(moved.back() == 999);
}

}  // namespace pv2::test
