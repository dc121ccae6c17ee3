// SPDX-License-Identifier: Apache-2.0
//
// Terminal: pv2-shell at a pseudo terminal, at which a test types, and whose screen it reads.

#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.h"
#include "tools/screen.h"
#include "tools/shell_process.h"

namespace pv2::testing {

/// Owned by one thread.
class Terminal {
 public:
  static constexpr std::string_view kPrompt = "pv2>";

  /// Whether this machine has pseudo terminals. A bare directory tree that is used as a root has
  /// none, as nobody has mounted /dev/pts; there is nothing to test then, which is said.
  static bool is_possible() {
    const int file = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (file >= 0) return ::close(file) == 0;
    WARN("there are no pseudo terminals here (mount devpts on /dev/pts): nothing was tested");
    return false;
  }

  /// `state`: the directory of the history. `kind`: the value of TERM.
  Terminal(std::vector<std::string> options, const std::string& state,
           const std::string& kind = "dumb") {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(master_ >= 0);
    REQUIRE(::grantpt(master_) == 0);
    REQUIRE(::unlockpt(master_) == 0);
    const winsize size{.ws_row = 50, .ws_col = 400, .ws_xpixel = 0, .ws_ypixel = 0};
    REQUIRE(::ioctl(master_, TIOCSWINSZ, &size) == 0);
    const std::string name = ::ptsname(master_);
    options.insert(options.begin(), "pv2-shell");
    std::vector<char*> argv;
    for (std::string& option : options) argv.push_back(option.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::setsid();
      const int slave = ::open(name.c_str(), O_RDWR);  // becomes the controlling terminal
      for (int file : {0, 1, 2}) ::dup2(slave, file);
      ::setenv("TERM", kind.c_str(), 1);
      ::setenv("XDG_STATE_HOME", state.c_str(), 1);
      ::setenv("USER", "ann", 1);
      ::execv(PV2_SHELL, argv.data());
      ::_exit(127);
    }
  }
  ~Terminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      end();
    }
    ::close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const Screen& screen() const { return screen_; }

  void type(const std::string& keys) {
    REQUIRE(::write(master_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }
  /// Reads until the screen is as wanted. False: it never becomes so.
  template <class Wanted>
  bool reads_until(Wanted&& wanted) {
    while (!wanted()) {
      pollfd readable{master_, POLLIN, 0};
      if (::poll(&readable, 1, kPatienceMs) != 1) return false;
      char block[4096];
      const ssize_t got = ::read(master_, block, sizeof block);
      if (got <= 0) return wanted();  // the shell has ended
      screen_.write({block, static_cast<std::size_t>(got)});
    }
    return true;
  }
  bool shows(std::string_view part) {
    return reads_until([&] { return screen_.text().find(part) != std::string::npos; });
  }
  /// The last line is an empty prompt, the so-many-th one.
  bool prompts(std::size_t count) {
    return reads_until([&] {
      const auto lines = screen_.lines();
      const auto prompts = std::ranges::count_if(
          lines, [](const std::string& line) { return line.starts_with(kPrompt); });
      return lines.back() == kPrompt && static_cast<std::size_t>(prompts) == count;
    });
  }

  /// Reads to the end, and returns the exit code; -1: a signal ended it.
  int end() {
    reads_until([] { return false; });
    int how = 0;
    REQUIRE(::waitpid(pid_, &how, 0) == pid_);
    pid_ = -1;
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
  }

 private:
  int master_ = -1;
  pid_t pid_ = -1;
  Screen screen_;
};

}  // namespace pv2::testing
