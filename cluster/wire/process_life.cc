// SPDX-License-Identifier: Apache-2.0
//
// Signals are blocked, and read like input.

#include "wire/process_life.h"

#include <poll.h>
#include <pv2/base/assert.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace pv2::cluster {
namespace {

sigset_t end_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

// False: the input has ended.
bool read_input() {
  char block[256];
  const ssize_t got = ::read(STDIN_FILENO, block, sizeof block);
  return got > 0 || (got < 0 && errno == EINTR);
}

}  // namespace

void die_with_parent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

void wait_for_end_of_input() {
  while (read_input()) continue;
}

EndRequest::EndRequest() {
  const sigset_t set = end_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  PV2_ASSERT(signals_ >= 0, "a process may have one more file descriptor");
}

EndRequest::~EndRequest() { ::close(signals_); }

void EndRequest::wait() {
  pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}};
  while (true) {
    if (::poll(sources, 2, -1) < 0) continue;  // EINTR
    if (sources[1].revents != 0) break;
    if (sources[0].revents != 0 && !read_input()) break;
  }
  signalfd_siginfo taken{};
  if (sources[1].revents != 0) {
    [[maybe_unused]] const ssize_t got = ::read(signals_, &taken, sizeof taken);
  }
  const sigset_t set = end_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace pv2::cluster
