// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: another run of this same program, controlled by lines over its stdin and stdout.
// The destructor kills it.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace example {

/// Owned by one thread, the one from which all children of the program are started.
class ChildProcess {
 public:
  /// Starts this program with `arguments`. Exits the program when that is impossible: then there is
  /// nothing to demonstrate.
  explicit ChildProcess(const std::vector<std::string>& arguments);
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

  /// Sends SIGKILL, and waits until the child is gone.
  void kill();
  /// Closes its stdin, on which the child ends by itself, and waits until it is gone.
  void finish();

 private:
  void reap();

  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  bool ended_ = false;
  bool gone_ = false;
  std::string heard_;  ///< The part of a line that has arrived.
};

}  // namespace example
