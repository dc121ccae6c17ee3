// SPDX-License-Identifier: Apache-2.0
//
// The two clocks, and the small values that the layers pass around: ids and the injected
// randomness.

#include "pv2/base/clock.h"

#include <set>
#include <vector>

#include "pv2/base/ids.h"
#include "pv2/base/random.h"
#include "support/catch.h"

namespace pv2::testing::clock_test {

using namespace std::chrono_literals;

TEST_CASE("a manual clock stands still until it is advanced, and then moves both times") {
  ManualClock clock(WallTime(100s));
  const SteadyTime start = clock.steady_now();
  CHECK(clock.is_manual());
  CHECK(clock.wall_now() == WallTime(100s));
  CHECK(clock.wall_now() == WallTime(100s));

  clock.advance(5s);
  clock.advance(0s);

  CHECK(clock.wall_now() == WallTime(105s));
  CHECK(clock.steady_now() == start + 5s);
}

TEST_CASE("a jump of the wall clock, back or forth, does not move monotonic time") {
  ManualClock clock(WallTime(100s));
  const SteadyTime start = clock.steady_now();

  clock.jump_wall(-30s);
  CHECK(clock.wall_now() == WallTime(70s));
  clock.jump_wall(60s);
  CHECK(clock.wall_now() == WallTime(130s));

  CHECK(clock.steady_now() == start);
}

TEST_CASE("listeners of a manual clock hear of each advance, in order, and may use the clock") {
  ManualClock clock(WallTime(0s));
  std::vector<std::pair<char, WallTime>> heard;
  const std::uint64_t a = clock.subscribe([&] { heard.emplace_back('a', clock.wall_now()); });
  const std::uint64_t b = clock.subscribe([&] { heard.emplace_back('b', clock.wall_now()); });
  CHECK(a != b);

  clock.advance(1s);
  clock.unsubscribe(a);
  clock.unsubscribe(a);  // twice is harmless
  clock.advance(1s);

  CHECK(heard == std::vector<std::pair<char, WallTime>>{
                     {'a', WallTime(1s)}, {'b', WallTime(1s)}, {'b', WallTime(2s)}});
}

TEST_CASE("a listener may unsubscribe itself while it is being called") {
  ManualClock clock;
  int calls = 0;
  std::uint64_t subscription = 0;
  subscription = clock.subscribe([&] {
    ++calls;
    clock.unsubscribe(subscription);
  });

  clock.advance(1s);
  clock.advance(1s);

  CHECK(calls == 1);
}

TEST_CASE("the system clock moves forward by itself and calls no listener") {
  SystemClock clock;
  CHECK_FALSE(clock.is_manual());
  CHECK(clock.subscribe([] { FAIL("nobody advances this clock"); }) == 0);
  clock.unsubscribe(0);
  const SteadyTime first = clock.steady_now();
  CHECK(clock.steady_now() >= first);
  CHECK(clock.wall_now() > WallTime(std::chrono::sys_days(std::chrono::year(2020) / 1 / 1)));
}

TEST_CASE("ids are false when they name nothing, and are ordered") {
  CHECK_FALSE(ProcedureId{});
  CHECK(ProcedureId{1});
  CHECK(ProcedureId{1} < ProcedureId{2});
  CHECK_FALSE(CommitSequence{});
  CHECK(CommitSequence{1} < CommitSequence{2});
  CHECK_FALSE(Nonce{});
  CHECK_FALSE(Nonce{7, 0});  // a group alone is no nonce
  CHECK(Nonce{0, 7});
  CHECK(Nonce{1, 9} < Nonce{2, 1});
}

TEST_CASE("neighbouring ids have different hashes") {
  std::set<std::size_t> hashes;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    hashes.insert(std::hash<ProcedureId>()(ProcedureId{i}));
    hashes.insert(std::hash<Nonce>()(Nonce{1, i}) ^ 1);
  }
  CHECK(hashes.size() == 2000);
}

TEST_CASE("nonces that a client has computed to collide have different hashes") {
  // group * kGroup ^ value * kValue is the same for all of them.
  constexpr std::uint64_t kGroup = 0x9E3779B97F4A7C15ULL;
  constexpr std::uint64_t kValue = 0xC2B2AE3D27D4EB4FULL;
  std::uint64_t inverse = kValue;  // modulo 2^64: each step doubles its number of right bits
  for (int i = 0; i < 6; ++i) inverse *= 2 - kValue * inverse;
  REQUIRE(inverse * kValue == 1);
  std::set<std::size_t> hashes;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Nonce nonce{i, (i * kGroup ^ 12345) * inverse};
    CHECK(std::hash<Nonce>()(nonce) == std::hash<Nonce>()(Nonce(nonce)));
    hashes.insert(std::hash<Nonce>()(nonce));
  }
  CHECK(hashes.size() == 1000);
}

TEST_CASE("a seed decides the whole sequence of random numbers") {
  Random zero(0);
  CHECK(zero.next() == 0xE220A8397B1DCDAFULL);  // SplitMix64's published first number
  Random a(5);
  Random b(5);
  Random other(6);
  CHECK(a.next() == b.next());
  CHECK(a.next() != other.next());
  for (int i = 0; i < 1000; ++i) REQUIRE(a.below(7) < 7);
}

}  // namespace pv2::testing::clock_test
