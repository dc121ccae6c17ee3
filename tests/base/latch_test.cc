// SPDX-License-Identifier: Apache-2.0
//
// A thread that waits for a value, and one that gives it: whoever is first.

#include "pv2/base/latch.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "support/catch.h"

namespace pv2::testing::latch_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a value that is there is not waited for") {
  Latch<std::string> latch;
  REQUIRE_FALSE(latch.has_value());

  latch.set("value");

  REQUIRE(latch.has_value());
  latch.wait();
  latch.wait_for(24h);
  REQUIRE(*latch.value == "value");
}

TEST_CASE("a thread that waits sees the value, whether it comes before it waits or afterwards") {
  for (int round = 0; round < 2'000; ++round) {
    const auto latch = std::make_shared<Latch<int>>();
    std::atomic<bool> go = false;
    std::thread gives([latch, &go, round] {
      while (!go.load()) {
      }
      latch->set(round);
    });
    go.store(true);
    for (int spins = round % 50; spins != 0; --spins) go.store(true);
    latch->wait();
    const int seen = *latch->value;
    gives.join();
    REQUIRE(seen == round);
  }
}

TEST_CASE("a wait for a time ends when the time is over or somebody asks to look again") {
  const auto latch = std::make_shared<Latch<int>>();

  latch->wait_for(1us);
  latch->look_again();
  latch->wait_for(24h);
  REQUIRE_FALSE(latch->has_value());

  latch->set(1);
  latch->wait();
  REQUIRE(*latch->value == 1);
}

TEST_CASE(
    "a wait with a time limit ends when the value arrives or a manual clock is over the limit") {
  const auto clock = std::make_shared<ManualClock>();
  const auto latch = std::make_shared<Latch<int>>();
  const bool arrives = GENERATE(false, true);
  std::atomic<bool> is_over = false;
  std::thread moves([&] {
    if (arrives) latch->set(7);
    while (!is_over.load()) {
      clock->advance(1ms);
      std::this_thread::yield();
    }
  });

  const bool arrived = arrives_in_time(latch, *clock, arrives ? Duration(24h * 365) : Duration(1s));

  is_over.store(true);
  moves.join();
  REQUIRE(arrived == arrives);
}

TEST_CASE("the longest time limit there is does not overflow") {
  SystemClock system;
  ManualClock manual;
  Clock& clock = GENERATE(false, true) ? static_cast<Clock&>(manual) : system;
  const auto latch = std::make_shared<Latch<int>>();
  std::thread gives([latch] { latch->set(1); });

  REQUIRE(arrives_in_time(latch, clock, Duration::max()));
  gives.join();
}

}  // namespace
}  // namespace pv2::testing::latch_test
