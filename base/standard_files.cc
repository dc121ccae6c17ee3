// SPDX-License-Identifier: Apache-2.0
//
// A file that is opened gets the lowest free number, and the numbers are taken in order: so the one
// that is closed is the one that open() returns.

#include "pv2/base/standard_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace pv2 {
namespace {

void reserve(int descriptor, int mode) noexcept {
  if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) return;
  const int opened = ::open("/dev/null", mode);
  // Another thread has taken the number, or a lower one is closed still.
  if (opened >= 0 && opened != descriptor) ::close(opened);
}

}  // namespace

void reserve_standard_files() noexcept {
  reserve(STDIN_FILENO, O_RDONLY);
  // For reading only: an answer that nobody can read is not a success.
  reserve(STDOUT_FILENO, O_RDONLY);
  reserve(STDERR_FILENO, O_WRONLY);
}

}  // namespace pv2
