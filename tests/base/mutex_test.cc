// SPDX-License-Identifier: Apache-2.0
//
// Threads that want a mutex at the same time have it one after the other, whether they get it while
// they spin, while they yield, or after they have slept.

#include "pv2/base/mutex.h"

#include <chrono>
#include <thread>
#include <vector>

#include "support/catch.h"

namespace pv2::testing::mutex_test {
namespace {

struct Counted {
  Mutex mutex;
  int count PV2_GUARDED_BY(mutex) = 0;
};

// Keeps a processor busy: a sleep in the section would let the others sleep at once.
void stay_busy_for(std::chrono::microseconds duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

TEST_CASE("threads that contend for a mutex exclude each other") {
  constexpr int kTurns = 400;
  const int threads = GENERATE(2, 8);
  // Less than a thread spins, as long as it yields, and longer.
  const std::chrono::microseconds held = GENERATE(
      std::chrono::microseconds(1), std::chrono::microseconds(40), std::chrono::microseconds(400));
  CAPTURE(threads, held.count());
  const MutexContention before = mutex_contention();
  Counted counted;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      for (int turn = 0; turn < kTurns / threads; ++turn) {
        MutexLock lock(counted.mutex);
        const int seen = counted.count;
        stay_busy_for(held);
        counted.count = seen + 1;
      }
    });
  }
  for (std::thread& thread : all) thread.join();

  {
    MutexLock lock(counted.mutex);
    CHECK(counted.count == kTurns);
  }
  const MutexContention after = mutex_contention();
  CHECK(after.slept - before.slept <= after.found_taken - before.found_taken);
}

}  // namespace pv2::testing::mutex_test
