// SPDX-License-Identifier: Apache-2.0
//
// ProgressLine: one line of a terminal that says how far something is, rewritten in place, and gone
// when the answer comes. On anything that is no terminal it prints nothing.

#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace pv2::shell {

/// Owned by one thread.
class ProgressLine {
 public:
  /// nullptr: shows nothing.
  explicit ProgressLine(std::FILE* terminal = nullptr) : terminal_(terminal) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  [[nodiscard]] bool shows() const noexcept { return terminal_ != nullptr; }
  /// Replaces the line. What is wider than the terminal is cut.
  void show(std::string_view text);
  void clear();

 private:
  std::FILE* const terminal_;
  std::string shown_;
};

}  // namespace pv2::shell
