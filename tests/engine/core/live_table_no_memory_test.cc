// SPDX-License-Identifier: Apache-2.0
//
// The table of live executions when there is no memory. This program has an operator new of its
// own, which fails when a test of this file, or support/one_failure.h, says so; with a sanitizer it
// has the sanitizer's, and these tests are left out.

#include <pv2/base/block_cache.h>
#include <pv2/base/random.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <new>
#include <vector>

#include "core/live_leaf.h"
#include "core/live_table.h"
#include "model/execution.h"
#include "support/catch.h"
#include "support/one_failure.h"
#include "support/own_malloc.h"

#if !PV2_HAS_OWN_MALLOC

namespace pv2::testing::live_table_no_memory_test {
namespace {

// This thread gets no memory from operator new.
thread_local bool is_none_left = false;

void* memory_of(std::size_t bytes) {
  if (is_none_left || OneFailure::is_now()) throw std::bad_alloc();
  void* const memory = std::malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

/// While it lives, this thread gets `blocks` blocks, and otherwise no memory.
class NoMemory {
 public:
  explicit NoMemory(std::uint64_t blocks = 0) : few_blocks_(blocks) { is_none_left = true; }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory() { is_none_left = false; }

 private:
  const FewBlocksForTests few_blocks_;
};

/// A table, and what has to be in it.
struct Expected {
  LiveTable table;
  std::map<std::uint64_t, Execution*> map;

  void add(std::uint64_t id, Execution& execution) {
    table.emplace({id}, &execution);
    map.emplace(id, &execution);
  }
  void compare() const {
    REQUIRE(table.size() == map.size());
    auto at = map.begin();
    for (const Execution& execution : table) {
      if (at == map.end() || &execution != at->second) FAIL("not in order");
      if (table.find({at->first}) != at->second) FAIL("at " << at->first);
      ++at;
    }
    REQUIRE(at == map.end());
  }
};

}  // namespace

TEST_CASE("what finds no memory changes nothing in the live table") {
  const std::uint64_t blocks = GENERATE(0, 1);  // the index gets memory, and the leaves none
  std::vector<Execution> executions(1500);
  Random random(1);
  Expected expected;
  int failures = 0;
  for (Execution& execution : executions) {
    const std::uint64_t id = 1 + random.below(40) * 4096 + random.below(20) * 64 + random.below(64);
    if (expected.map.contains(id)) continue;
    bool has_failed = false;
    {
      const NoMemory no_memory(blocks);
      try {
        expected.table.emplace({id}, &execution);
      } catch (const std::bad_alloc&) {
        has_failed = true;
      }
    }
    if (has_failed) {
      ++failures;
      CHECK(expected.table.find({id}) == nullptr);
      expected.compare();
      expected.table.emplace({id}, &execution);
    }
    expected.map.emplace(id, &execution);
  }
  expected.compare();
  CHECK(failures > 0);
}

TEST_CASE("to take executions out of the live table needs no memory") {
  const std::uint64_t gap = GENERATE(1, 3, 64, 200);
  std::vector<Execution> executions(500);
  Expected expected;
  for (std::uint64_t i = 0; i < executions.size(); ++i) expected.add(1 + i * gap, executions[i]);
  {
    const NoMemory no_memory;
    for (std::uint64_t i = 0; i < executions.size(); ++i) {
      if (i % 7 != 0) expected.table.erase({1 + i * gap});
    }
  }
  for (std::uint64_t i = 0; i < executions.size(); ++i) {
    if (i % 7 != 0) expected.map.erase(1 + i * gap);
  }
  expected.compare();
  {
    const NoMemory no_memory;
    for (const auto& [id, execution] : expected.map) expected.table.erase({id});
  }
  CHECK(expected.table.size() == 0);
}

TEST_CASE("a part of the live table gives memory back, as soon as there is some for fewer") {
  std::vector<Execution> executions(LiveLeaf::kIds);
  LiveLeaf leaf;
  for (unsigned number = 0; number < LiveLeaf::kIds; ++number) {
    REQUIRE(leaf.add(number, &executions[number]));
  }
  REQUIRE(leaf.capacity() == 64);
  {
    const NoMemory no_memory;
    for (unsigned number = 10; number < LiveLeaf::kIds; ++number) leaf.remove(number);
  }
  CHECK(leaf.capacity() == 64);
  for (unsigned number = 9; number > 1; --number) {
    leaf.remove(number);
    for (unsigned left = 0; left < number; ++left) CHECK(leaf.find(left) == &executions[left]);
  }
  CHECK(leaf.capacity() == 4);
  leaf.remove(0);
  CHECK(leaf.capacity() == 1);
  CHECK(leaf.find(1) == &executions[1]);
}

}  // namespace pv2::testing::live_table_no_memory_test

void* operator new(std::size_t bytes) {
  return pv2::testing::live_table_no_memory_test::memory_of(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

#endif
