// SPDX-License-Identifier: Apache-2.0
//
// LoadThreads alone: where tasks run, in which order, and what becomes of them at the end.

#include "recovery/load_threads.h"

#include <pv2/base/thread.h>

#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "support/engine_world.h"

namespace pv2::testing::load_threads_test {
namespace {

struct NoThreadsLeft {
  NoThreadsLeft() { limit_new_threads_for_tests(0); }
  ~NoThreadsLeft() { limit_new_threads_for_tests(std::nullopt); }
  NoThreadsLeft(const NoThreadsLeft&) = delete;
  NoThreadsLeft& operator=(const NoThreadsLeft&) = delete;
};

}  // namespace

TEST_CASE("as many tasks of a load run side by side as it may have threads") {
  LoadThreads threads(2);
  std::latch both(2);
  std::latch done(2);
  std::atomic<bool> here{false};
  for (int i = 0; i < 2; ++i) {
    threads.run([&, owner = std::this_thread::get_id()] {
      both.arrive_and_wait();  // hangs unless the other one runs, too
      if (std::this_thread::get_id() == owner) here = true;
      done.count_down();
    });
  }
  done.wait();
  CHECK_FALSE(here);
  CHECK_FALSE(threads.help());
}

TEST_CASE("who waits for a load runs the tasks that no thread has begun, the oldest first") {
  const std::size_t most = GENERATE(0U, 2U);
  NoThreadsLeft limit;
  LoadThreads threads(most);
  std::vector<int> ran;
  for (int i = 1; i <= 3; ++i) threads.run([&ran, i] { ran.push_back(i); });
  CHECK(ran.empty());
  CHECK(threads.help());
  CHECK(ran == std::vector{1});
  CHECK(threads.help());
  CHECK(threads.help());
  CHECK_FALSE(threads.help());
  CHECK(ran == std::vector{1, 2, 3});
}

TEST_CASE("a load that ends waits for the task that runs, and destroys the others") {
  const auto kept = std::make_shared<int>();
  std::latch runs(1);
  std::latch goes_on(1);
  std::atomic<bool> ended{false};
  std::thread later;
  {
    LoadThreads threads(1);
    threads.run([&, kept] {
      runs.count_down();
      goes_on.wait();
      ended = true;
    });
    for (int i = 0; i < 10; ++i) threads.run([kept] {});
    runs.wait();
    later = std::thread([&] { goes_on.count_down(); });
  }
  CHECK(ended);
  CHECK(kept.use_count() == 1);
  later.join();
}

}  // namespace pv2::testing::load_threads_test
