// SPDX-License-Identifier: Apache-2.0
//
// ProgramRun: what a program of this project printed, and how it ended. A program that a signal
// has ended has no exit code (-1).

#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "support/catch.h"

namespace pv2::testing {

/// A value.
struct ProgramRun {
  int code = -1;
  std::string output;  ///< Of the program and of its children, with what they print as errors.
};

/// Runs a command of the shell, and waits for its end.
inline ProgramRun run_program(const std::string& command) {
  ProgramRun run;
  std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");  // NOLINT: it is ours
  REQUIRE(pipe != nullptr);
  std::array<char, 256> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) run.output += line.data();
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) run.code = WEXITSTATUS(status);
  return run;
}

}  // namespace pv2::testing
