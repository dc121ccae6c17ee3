// SPDX-License-Identifier: Apache-2.0
//
// in_child: runs code that is expected to end its process in a child process.

#pragma once

#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>

#include "support/forked_child.h"

namespace pv2::testing {

/// Runs `act` in a child process. Returns the child's stderr, and whether it ended by abort().
template <class Act>
std::pair<std::string, bool> in_child(Act act) {
  ForkedChild child([&](int writing) {
    // The test program's own handler of SIGABRT would report a failed test case.
    std::signal(SIGABRT, SIG_DFL);
    ::dup2(writing, STDERR_FILENO);
    act();
  });
  std::string text = child.read_all();
  const int how = child.wait();
  return {std::move(text), WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT};
}

}  // namespace pv2::testing
