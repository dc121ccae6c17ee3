// SPDX-License-Identifier: Apache-2.0
//
// Interrupts: Ctrl-C stops the wait of a statement, and never the shell; SIGTERM and SIGHUP end the
// shell as `exit` does, so that its cluster and its temporary directory go with it. The handlers
// only set flags; whoever waits looks at them.

#pragma once

namespace pv2::shell {

/// One at a time in a process, because signals belong to the process. Thread-safe.
class Interrupts {
 public:
  /// Takes the signals over, until it is destroyed.
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Whether Ctrl-C came, or a signal that ends the shell; forgets it, but not must_end().
  static bool take();
  /// Whether Ctrl-C came.
  [[nodiscard]] static bool came();
  /// Whether the shell is to end. It stays so.
  [[nodiscard]] static bool must_end();
};

}  // namespace pv2::shell
