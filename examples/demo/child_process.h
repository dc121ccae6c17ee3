// SPDX-License-Identifier: Apache-2.0
//
// ChildProcess: another run of this very program, talked to in lines over its stdin and stdout.
// Whoever owns it is responsible for its end: the destructor kills it.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace demo {

/// Owned by one thread, the one that all children of a program are started from.
class ChildProcess {
 public:
  /// Starts this program with `arguments`. Exits the program when that is impossible: then there is
  /// nothing to demonstrate.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  /// Writes a line to its stdin; one that is dead does not care.
  void tell(const std::string& line);
  /// The next line of its stdout; nullopt when it has ended, or says nothing in time (see ended()).
  std::optional<std::string> hear(std::chrono::microseconds patience);

  /// Whether the last hear() found that it will say nothing more.
  [[nodiscard]] bool ended() const { return ended_; }

  /// SIGKILL, and waits until it is gone.
  void kill();
  /// Closes its stdin, on which it ends by itself, and waits until it is gone.
  void finish();

 private:
  void reap();

  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  bool ended_ = false;
  bool gone_ = false;
  std::string heard_;  ///< Not yet a whole line.
};

}  // namespace demo
