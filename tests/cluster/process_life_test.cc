// SPDX-License-Identifier: Apache-2.0
//
// For how long a process lives whose parent ends.

#include "wire/process_life.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "support/catch.h"
#include "support/forked_child.h"

namespace pv2::testing::process_life_test {
namespace {

// Says back what it hears.
void live(int writing, int hearing, int armed) {
  cluster::die_with_parent();
  say(armed, "a");
  char byte = 0;
  while (::read(hearing, &byte, 1) == 1) say(writing, std::string(1, byte));
}

// 'S': it sleeps.
char state_of_thread(pid_t thread) {
  std::string stat;
  std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread) + "/stat"), stat);
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos ? '?' : stat[name_end + 2];
}

}  // namespace

TEST_CASE("a child outlives the thread that has started it, and not the process") {
  int words[2];
  REQUIRE(::pipe(words) == 0);
  ForkedChild middle([&](int writing) {
    int armed[2];
    if (::pipe(armed) != 0) ::_exit(1);
    std::thread([&] {
      if (::fork() == 0) {
        live(writing, words[0], armed[1]);
        ::_exit(0);
      }
      char byte = 0;
      [[maybe_unused]] const auto got = ::read(armed[0], &byte, 1);
    }).join();
    say(writing, "joined");
    while (true) ::pause();
  });
  REQUIRE(middle.read_some() == "joined");

  REQUIRE(::write(words[1], "x", 1) == 1);
  CHECK(middle.read_some() == "x");

  middle.kill();
  CHECK(middle.read_all().empty());  // it ends when the child does
  ::close(words[0]);
  ::close(words[1]);
}

TEST_CASE("a child whose parent has ended before it looks does not live on") {
  ForkedChild child([](int writing) {
    ::setenv(cluster::kParentVariable, "1234567", 1);
    cluster::die_with_parent();
    say(writing, "lives");
  });
  CHECK(child.read_all().empty());
  const int how = child.wait();
  CHECK(WIFSIGNALED(how));
}

TEST_CASE("an input that does not block has not ended while there is nothing to read") {
  ForkedChild child([](int writing) {
    int input[2];
    if (::pipe2(input, O_CLOEXEC | O_NONBLOCK) != 0) ::_exit(1);
    ::dup2(input[0], STDIN_FILENO);
    std::thread([waits = ::getpid(), end = input[1]] {
      while (state_of_thread(waits) != 'S') std::this_thread::yield();
      ::close(end);
    }).detach();
    cluster::wait_for_end_of_input();
    pollfd ended{STDIN_FILENO, 0, 0};
    static_cast<void>(::poll(&ended, 1, 0));
    say(writing, (ended.revents & POLLHUP) != 0 ? "ended" : "gave up");
  });
  CHECK(child.read_all() == "ended");
}

}  // namespace pv2::testing::process_life_test
