// SPDX-License-Identifier: Apache-2.0
//
// Decoders alone: where tasks run, in which order, and what becomes of them at the end.

#include "recovery/decoders.h"

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "support/engine_world.h"
#include "support/new_threads_limit.h"

namespace pv2::testing::decoders_test {

TEST_CASE("as many tasks of a load run side by side as it may have threads") {
  std::latch both(2);
  std::latch done(2);
  std::atomic<bool> here{false};
  Decoders decoders(2);
  for (int i = 0; i < 2; ++i) {
    decoders.run([&, owner = std::this_thread::get_id()] {
      both.arrive_and_wait();  // hangs unless the other one runs, too
      if (std::this_thread::get_id() == owner) here = true;
      done.count_down();
    });
  }
  done.wait();
  CHECK_FALSE(here);
  CHECK_FALSE(decoders.help());
}

TEST_CASE("the owner of a load runs the tasks that no thread has begun, the oldest first") {
  const std::size_t most = GENERATE(0U, 2U);
  const NewThreadsLimit none(0);
  std::vector<int> ran;
  Decoders decoders(most);
  for (int i = 1; i <= 3; ++i) decoders.run([&ran, i] { ran.push_back(i); });
  CHECK(ran.empty());
  CHECK(decoders.help());
  CHECK(ran == std::vector{1});
  CHECK(decoders.help());
  CHECK(decoders.help());
  CHECK_FALSE(decoders.help());
  CHECK(ran == std::vector{1, 2, 3});
}

TEST_CASE("a load that ends waits for the task that runs") {
  std::latch runs(1);
  std::latch goes_on(1);
  std::atomic<bool> ended{false};
  std::thread later;
  {
    Decoders decoders(1);
    decoders.run([&] {
      runs.count_down();
      goes_on.wait();
      ended = true;
    });
    runs.wait();
    later = std::thread([&] { goes_on.count_down(); });
  }
  CHECK(ended);
  later.join();
}

TEST_CASE("tasks that have not begun are destroyed when a load ends") {
  const NewThreadsLimit none(0);
  const auto kept = std::make_shared<int>();
  bool ran = false;
  {
    Decoders decoders(1);
    decoders.run([&ran, kept] { ran = true; });
  }
  CHECK_FALSE(ran);
  CHECK(kept.use_count() == 1);
}

}  // namespace pv2::testing::decoders_test
