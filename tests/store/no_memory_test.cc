// SPDX-License-Identifier: Apache-2.0
//
// Reads and openings of a LevelDB store when there is no memory, at each place where one asks for
// some, each in a process of its own. This program has an operator new of its own, which fails when
// a test of this file says so; with a sanitizer it has the sanitizer's, and these tests are left
// out.

#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <new>
#include <string>

#include "store_fixture.h"
#include "support/catch.h"
#include "support/forked_child.h"
#include "support/own_malloc.h"

#if !PV2_HAS_OWN_MALLOC

namespace pv2::testing::store_no_memory_test {
namespace {

// How often this thread still gets memory from operator new. Below 0: always.
thread_local long left = -1;

void* memory_of(std::size_t bytes) {
  if (left == 0) throw std::bad_alloc();
  if (left > 0) --left;
  void* const memory = std::malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

constexpr int kRows = 40;  // half of them in the database, half in the log
constexpr int kEnded = 7;

void commit_rows(Writer& writer, int from, int to) {
  for (int i = from; i < to; ++i) {
    if (!writer.write("a key that has memory of its own " + std::to_string(i)).ok()) ::_exit(1);
  }
}

// What `story` says in a process of its own; nothing if the process has ended for want of memory.
std::string said_by(const std::function<void(int writing)>& story) {
  ForkedChild child([&](int writing) {
    std::set_terminate([] { ::_exit(kEnded); });
    ::alarm(60);  // a mutex of LevelDB's that stays locked
    story(writing);
  });
  std::string said = child.read_all();
  const int status = child.wait();
  INFO(said << ", status " << status);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == (said.empty() ? kEnded : 0));
  return said;
}

// Reads with memory for `allocations`. "threw", "read", or nothing if the process has ended. Then
// it reads again, with memory: "all", or "lost".
std::string read_with(long allocations, const std::function<bool(Writer&)>& read) {
  return said_by([&](int writing) {
    CrashEnv env;
    {
      Writer before(env);
      if (!before.open().ok()) ::_exit(1);
      commit_rows(before, 0, kRows / 2);
      before.store().close();
    }
    Writer writer(env);
    if (!writer.open().ok()) ::_exit(1);
    commit_rows(writer, kRows / 2, kRows);
    bool threw = false;
    left = allocations;
    try {
      read(writer);
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    left = -1;
    say(writing, threw ? "threw " : "read ");
    say(writing, read(writer) ? "all" : "lost");
    writer.store().close();
  });
}

TEST_CASE("a read of a store for which there is no memory ends the process, or loses no row") {
  const bool scans = GENERATE(true, false);
  const auto read = [scans](Writer& writer) {
    if (scans) return scan_rows(writer.store(), Space::kHost, "").size() == kRows;
    for (const int row : {1, kRows - 1}) {
      const std::string key = "a key that has memory of its own " + std::to_string(row);
      const auto value = writer.store().get(Space::kHost, key);
      if (!value.ok() || !value->has_value()) return false;
    }
    return true;
  };
  int ended = 0;
  std::string said;
  for (long allocations = 0; said != "read all"; ++allocations) {
    INFO(allocations << " allocations");
    said = read_with(allocations, read);
    REQUIRE((said.empty() || said == "threw all" || said == "read all"));
    ended += said.empty() ? 1 : 0;
  }
  CHECK(ended > 0);
}

// Opens a store with memory for `allocations`. "threw", "refused", "opened", or nothing if the
// process has ended. Then it is opened with memory: "all", or what is wrong.
std::string open_with(long allocations) {
  return said_by([&](int writing) {
    CrashEnv env;
    for (const int from : {0, kRows / 2}) {
      Writer before(env);
      if (!before.open().ok()) ::_exit(1);
      commit_rows(before, from, from + kRows / 2);
      before.store().close();
    }
    std::string first = "threw ";
    {
      Writer writer(env);
      left = allocations;
      try {
        const bool opened = writer.open().ok();
        left = -1;
        first = opened ? "opened " : "refused ";
      } catch (const std::bad_alloc&) {
        left = -1;
      }
      writer.store().close();
    }
    say(writing, first);
    Writer writer(env);
    const Status status = writer.open();
    const bool all = status.ok() && scan_rows(writer.store(), Space::kHost, "").size() == kRows;
    say(writing, all ? "all" : "not all: " + status.to_string());
  });
}

TEST_CASE("a store that finds no memory while it is opened ends the process, or opens again") {
  std::string said;
  for (long allocations = 0; said != "opened all"; ++allocations) {
    INFO(allocations << " allocations");
    said = open_with(allocations);
    REQUIRE((said.empty() || said == "threw all" || said == "refused all" || said == "opened all"));
  }
}

}  // namespace
}  // namespace pv2::testing::store_no_memory_test

void* operator new(std::size_t bytes) {
  return pv2::testing::store_no_memory_test::memory_of(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

#endif
