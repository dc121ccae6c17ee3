// SPDX-License-Identifier: Apache-2.0
//
// Signals are blocked, and read like input.

#include "wire/process_life.h"

#include <poll.h>
#include <pv2/base/assert.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace pv2::cluster {
namespace {

constexpr auto kLookForParentEvery = std::chrono::milliseconds(100);

sigset_t end_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

// False: the input has ended. In an input that does not block there may be nothing yet.
bool read_input() {
  char block[256];
  const ssize_t got = ::read(STDIN_FILENO, block, sizeof block);
  return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

}  // namespace

void die_with_parent() {
  // After this look, a parent that ends is another parent. Whoever adopts the process is none.
  const pid_t now = ::getppid();
  pid_t parent = now;
  if (const char* const told = std::getenv(kParentVariable); told != nullptr) {
    parent = static_cast<pid_t>(std::strtol(told, nullptr, 10));
    ::unsetenv(kParentVariable);  // it is not that of the processes that this one starts
  }
  if (parent != now) ::raise(SIGKILL);
  // The system could send a signal (PR_SET_PDEATHSIG), but does so when the thread ends that has
  // started this process. The signals of this process are for others.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([parent] {
    while (::getppid() == parent) std::this_thread::sleep_for(kLookForParentEvery);
    ::kill(::getpid(), SIGKILL);
  }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void wait_for_end_of_input() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  do {
    static_cast<void>(::poll(&input, 1, -1));
  } while (read_input());
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
