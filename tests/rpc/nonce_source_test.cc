// SPDX-License-Identifier: Apache-2.0
//
// N-04: nonces are unique. The ids of one source are consecutive numbers in one group, so two
// facts show that none comes twice: each id is the one before plus 1, and there are fewer than
// 2^64. PV2_TEST_NONCES says how many are made (default 10^7; the nightly run makes 10^8).

#include "pv2/rpc/nonce_source.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.h"
#include "support/forked_child.h"

namespace pv2::testing::nonce_source_test {
namespace {

std::uint64_t nonces_to_make() {
  const char* const given = std::getenv("PV2_TEST_NONCES");
  return given == nullptr ? 10'000'000 : std::strtoull(given, nullptr, 10);
}

// The number after `value`; 0 is left out, because it means "no nonce".
constexpr std::uint64_t after(std::uint64_t value) { return value + 1 == 0 ? 1 : value + 1; }

std::string to_text(const Nonce& nonce) {
  return std::to_string(nonce.group) + ":" + std::to_string(nonce.value);
}

}  // namespace

TEST_CASE("N-04: a source never gives the same nonce twice, nor the value 0") {
  NonceSource source;
  const Nonce first = source.next();
  CHECK(first.value != 0);

  Nonce last = first;
  std::uint64_t breaches = 0;
  const std::uint64_t count = nonces_to_make();
  for (std::uint64_t i = 1; i < count; ++i) {
    const Nonce next = source.next();
    if (next.group != first.group || next.value != after(last.value)) ++breaches;
    last = next;
  }

  CHECK(breaches == 0);
}

TEST_CASE("N-04: threads that share a source get different nonces") {
  constexpr std::size_t kEach = 200'000;
  NonceSource source;
  std::vector<std::vector<Nonce>> taken(4);
  std::vector<std::thread> threads;
  for (auto& mine : taken) {
    threads.emplace_back([&source, &mine] {
      mine.reserve(kEach);
      for (std::size_t i = 0; i < kEach; ++i) mine.push_back(source.next());
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::vector<std::uint64_t> values;
  std::set<std::uint64_t> groups;
  for (const auto& mine : taken) {
    for (const Nonce& nonce : mine) {
      values.push_back(nonce.value);
      groups.insert(nonce.group);
    }
  }
  CHECK(groups.size() == 1);
  std::sort(values.begin(), values.end());
  CHECK(std::adjacent_find(values.begin(), values.end()) == values.end());
}

TEST_CASE("N-04: two sources have different groups, and begin at different places") {
  std::set<std::uint64_t> groups;
  std::set<std::uint64_t> values;
  for (int i = 0; i < 1000; ++i) {
    const Nonce nonce = NonceSource().next();
    groups.insert(nonce.group);
    values.insert(nonce.value);
  }

  CHECK(groups.size() == 1000);
  CHECK(values.size() == 1000);
}

TEST_CASE("N-04: a child process goes on in a group of its own") {
  NonceSource source;
  const Nonce before = source.next();

  ForkedChild child([&](int writing) {
    const Nonce first = source.next();
    const Nonce second = source.next();
    say(writing, second.group == first.group && second.value == after(first.value) ? "" : "not ");
    say(writing, "consecutive " + to_text(first));
  });
  const std::string told = child.read_all();
  child.wait();
  const Nonce next = source.next();

  CHECK_THAT(told, StartsWith("consecutive "));
  CHECK_THAT(told, !ContainsSubstring(" " + std::to_string(before.group) + ":"));
  CHECK(next.group == before.group);
  CHECK(next.value == after(before.value));
}

}  // namespace pv2::testing::nonce_source_test
