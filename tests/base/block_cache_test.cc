// SPDX-License-Identifier: Apache-2.0
//
// Threads keep free blocks and hand them to each other. Two blocks in use never overlap, whichever
// threads took and gave them. A bound limits how many free blocks are kept. This program keeps them
// under the sanitizers, too, where the library keeps none.

#include <malloc.h>
#include <pv2/base/block_cache.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.h"

namespace pv2::test {
namespace {

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

TEST_CASE("what is kept of one size is bounded") {
  constexpr std::size_t kCount = 20'000;
  const std::size_t before = mallinfo2().uordblks;
  std::vector<void*> blocks(kCount);
  for (void*& block : blocks) block = take_block(kCachedBlockMax);
  for (void* const block : blocks) give_block(block, kCachedBlockMax);
  blocks = {};
  const std::size_t after = mallinfo2().uordblks;
  // 256 KiB in the depot, 64 blocks of this thread, and malloc's own bytes with each.
  CHECK(after < before + (std::size_t{256} << 10) + 64 * kCachedBlockMax + 40'000);
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
