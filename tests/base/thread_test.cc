// SPDX-License-Identifier: Apache-2.0
//
// A thread has the name by which it was started, as far as the system keeps it, and may let others
// go first.

#include "pv2/base/thread.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <string>

#include "support/catch.h"

namespace pv2::testing::thread_test {
namespace {

TEST_CASE("a thread has its name, cut to what the system keeps, before its work begins") {
  const auto [given, kept] = GENERATE(table<std::string, std::string>(
      {{"pv2-worker-1", "pv2-worker-1"}, {"a-name-that-is-too-long", "a-name-that-is-"}}));
  std::array<char, 32> name{};
  auto thread = start_thread(given, "a test",
                             [&] { pthread_getname_np(pthread_self(), name.data(), name.size()); });
  REQUIRE(thread.ok());
  thread->join();

  REQUIRE(std::string(name.data()) == kept);
}

TEST_CASE("a thread that lets others go first changes nobody else's priority") {
  const int before = getpriority(PRIO_PROCESS, 0);
  int nice = before;
  auto thread = start_thread("polite", "a test", [&] {
    let_others_go_first();
    nice = getpriority(PRIO_PROCESS, 0);
  });
  REQUIRE(thread.ok());
  thread->join();

  CHECK(nice == std::min(before + 5, 19));
  CHECK(getpriority(PRIO_PROCESS, 0) == before);
}

TEST_CASE("a thread that cannot be started says for what it was, and why") {
  limit_new_threads_for_tests(0);
  const auto thread = start_thread("pv2-pool", "the pool of the executor", [] {});
  limit_new_threads_for_tests({});

  REQUIRE(thread.status().code() == StatusCode::kResourceExhausted);
  REQUIRE_THAT(std::string(thread.status().message()),
               ContainsSubstring("the pool of the executor"));
}

}  // namespace
}  // namespace pv2::testing::thread_test
