// SPDX-License-Identifier: Apache-2.0
//
// ForkedChild: runs a piece of a test in a child process, with a pipe back to the test. Fork copies
// only the calling thread, so threads have to be started inside the child.

#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "support/catch.h"

namespace pv2::testing {

/// Owned by one thread. A child that still runs is killed when this object goes.
class ForkedChild {
 public:
  /// Calls `body(writing)` in a new process, which ends with code 0 when the call returns.
  /// `writing` is the child's end of the pipe.
  template <class Body>
  explicit ForkedChild(Body body) {
    int ends[2] = {-1, -1};
    REQUIRE(::pipe(ends) == 0);
    std::fflush(nullptr);  // or the child writes what the test program has buffered once more
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::close(ends[0]);
      // An exception must not unwind into the child's copy of the test program.
      [&]() noexcept { body(ends[1]); }();
      ::_exit(0);
    }
    ::close(ends[1]);
    reading_ = ends[0];
  }
  ~ForkedChild() {
    kill();
    ::close(reading_);
  }
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// What one read of the pipe returns; blocks while it is empty. "" when the child has closed it.
  std::string read_some() const {
    char buffer[512];
    const ssize_t got = ::read(reading_, buffer, sizeof buffer);
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
  }
  /// Everything that the child writes until it closes the pipe or ends.
  std::string read_all() const {
    std::string text;
    for (std::string some; !(some = read_some()).empty();) text += some;
    return text;
  }

  /// Kills the child by SIGKILL, unless wait() was called.
  void kill() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  /// Waits until the child ends; returns the status as waitpid() gives it.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

 private:
  pid_t pid_ = -1;  // -1: wait() was called
  int reading_ = -1;
};

/// For the child: writes `text` into the pipe, or ends the process with 1.
inline void say(int writing, std::string_view text) {
  if (::write(writing, text.data(), text.size()) < 0) ::_exit(1);
}

}  // namespace pv2::testing
