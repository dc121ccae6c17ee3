// SPDX-License-Identifier: Apache-2.0
//
// LineEditor: reads lines that a person types at a terminal, with editing, history and completion.
// It is the one place that knows libedit, which was chosen because its licence is BSD's: readline
// does the same under the GPL, which a program under Apache-2.0 cannot bring to its users.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "terminal/completion.h"

namespace pv2::shell {

/// Owned by one thread. One at a time in a process.
class LineEditor {
 public:
  using Completer = std::function<Completion(std::string_view line)>;

  /// Edits on standard input and output. `history`: older lines, the oldest first. `completer` gets
  /// the line up to the cursor.
  LineEditor(std::string prompt, const std::vector<std::string>& history, Completer completer);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  struct Line {
    enum class Kind { kLine, kInterrupted, kEnd };
    Kind kind = Kind::kEnd;
    std::string text;
  };
  /// Waits for a line. kInterrupted: Ctrl-C gave it up. kEnd: Ctrl-D on an empty line, or the
  /// terminal is gone, or the shell has to end.
  [[nodiscard]] Line read();
  /// Adds a line to what the arrow keys go through.
  void remember(const std::string& line);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pv2::shell
