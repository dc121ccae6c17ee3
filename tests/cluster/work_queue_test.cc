// SPDX-License-Identifier: Apache-2.0
//
// Work queues with threads: the order of one thread, the company of several, and the end.

#include "storage/work_queue.h"

#include <latch>
#include <vector>

#include "support/catch.h"

namespace pv2::cluster {
namespace {

TEST_CASE("a work queue with one thread runs its work in order, and all of it before it ends") {
  std::vector<int> ran;
  {
    const auto queue = ThreadWorkQueue::start("one");
    REQUIRE(queue.ok());
    for (int i = 0; i < 100; ++i) (*queue)->run([&ran, i] { ran.push_back(i); });
  }

  REQUIRE(ran.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(ran[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("a work queue with three threads runs three pieces of work at once") {
  // Each piece ends only when all three have begun.
  std::latch begun(3);
  {
    const auto queue = ThreadWorkQueue::start("three", 3);
    REQUIRE(queue.ok());
    for (int i = 0; i < 3; ++i) (*queue)->run([&begun] { begun.arrive_and_wait(); });
  }

  CHECK(begun.try_wait());
}

}  // namespace
}  // namespace pv2::cluster
