// SPDX-License-Identifier: Apache-2.0
//
// Standard descriptors that are closed when a program starts. Each case runs in a process of its
// own, because the test needs its own output.

#include <fcntl.h>
#include <pv2/base/standard_files.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "support/catch.h"

namespace pv2::testing::standard_files_test {
namespace {

bool is_open(int descriptor) { return ::fcntl(descriptor, F_GETFD) >= 0; }

// Bits of the exit code.
constexpr int kInputDoesNotEnd = 1;
constexpr int kOutputIsWritten = 2;
constexpr int kErrorsFail = 4;
constexpr int kNumberIsFree = 8;

/// Reserves the descriptors in a process in which those of the bits 0 to 2 of `closed` are closed.
int exit_code_with(int closed) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int descriptor = 0; descriptor < 3; ++descriptor) {
      if ((closed & (1 << descriptor)) != 0) ::close(descriptor);
    }
    pv2::reserve_standard_files();
    int code = 0;
    char byte = 'x';
    if ((closed & 1) != 0 && ::read(0, &byte, 1) != 0) code |= kInputDoesNotEnd;
    if ((closed & 2) != 0 && (::write(1, &byte, 1) != -1 || errno != EBADF)) {
      code |= kOutputIsWritten;
    }
    if ((closed & 4) != 0 && ::write(2, &byte, 1) != 1) code |= kErrorsFail;
    if (!is_open(0) || !is_open(1) || !is_open(2) || ::open("/dev/null", O_RDONLY) < 3) {
      code |= kNumberIsFree;
    }
    ::_exit(code);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("no file that is opened gets the number of a standard one that was closed") {
  for (int closed = 0; closed < 8; ++closed) {
    CAPTURE(closed);
    CHECK(exit_code_with(closed) == 0);
  }
}

TEST_CASE("standard files that are open stay as they are") {
  const pid_t child = ::fork();
  if (child == 0) {
    int ends[2];
    if (::pipe(ends) != 0 || ::dup2(ends[1], 1) != 1) ::_exit(1);
    pv2::reserve_standard_files();
    char byte = 'x';
    ::_exit(::write(1, &byte, 1) == 1 && ::read(ends[0], &byte, 1) == 1 ? 0 : 2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace pv2::testing::standard_files_test
