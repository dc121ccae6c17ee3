// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: another run of this same program, controlled by lines over its stdin and stdout.

#pragma once

#include <pv2/base/status.h>
#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pv2::cluster {

/// Owned by one thread, the one from which all children of the program are started.
class ChildProcess {
 public:
  /// Starts this program with `arguments`. Its stderr is appended to the file `messages`; empty: it
  /// is this program's. It is in a process group of its own, so Ctrl-C at a terminal is for this
  /// program alone. It inherits which signals are ignored, SIGPIPE too.
  /// kIoError: the system cannot.
  [[nodiscard]] static Result<std::unique_ptr<ChildProcess>> start(
      const std::vector<std::string>& arguments, const std::string& messages = {});
  /// Kills it.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  /// Writes a line to the child's stdin; does nothing if the child is dead.
  void tell(const std::string& line);
  /// The next line of its stdout; nullopt when it has ended, or printed nothing in time (see
  /// ended()).
  std::optional<std::string> hear(std::chrono::microseconds patience);

  /// Whether the last hear() found that the child will print nothing more.
  [[nodiscard]] bool ended() const { return ended_; }
  /// Whether the process is gone by now, however that came.
  [[nodiscard]] bool is_gone();

  /// Sends SIGKILL, and waits until the child is gone.
  void kill();
  /// Stops it (SIGSTOP): it does nothing, and does not know it, until resume().
  void pause();
  void resume();
  /// Closes its stdin, on which the child ends by itself, and waits until it is gone.
  void finish();

 private:
  ChildProcess(pid_t pid, int input, int output) : pid_(pid), input_(input), output_(output) {}
  void reap();

  const pid_t pid_;
  int input_ = -1;
  const int output_;
  bool ended_ = false;
  bool gone_ = false;
  std::string heard_;  ///< The part of a line that has arrived.
};

}  // namespace pv2::cluster
