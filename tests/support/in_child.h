// SPDX-License-Identifier: Apache-2.0
//
// in_child: runs code that is expected to end its process in a child process. Fork copies only the
// calling thread, so threads have to be started inside.

#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <string>
#include <utility>

#include "support/catch.h"

namespace pv2::testing {

/// Runs `act` in a child process. Returns the child's stderr, and whether it ended by abort().
template <class Act>
std::pair<std::string, bool> in_child(Act act) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // The test program's own handler of SIGABRT would report a failed test case.
    std::signal(SIGABRT, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    act();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int how = 0;
  REQUIRE(waitpid(child, &how, 0) == child);
  return {text, WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT};
}

}  // namespace pv2::testing
