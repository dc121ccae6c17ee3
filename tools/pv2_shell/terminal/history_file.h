// SPDX-License-Identifier: Apache-2.0
//
// HistoryFile: the lines that were typed, in a file of the user's. A line is in the file before its
// statement runs, so it is there also if the shell is killed. A history that cannot be read or
// written is no reason not to run: its failures are told and ignored.

#pragma once

#include <pv2/base/status.h>

#include <string>
#include <vector>

namespace pv2::shell {

/// Owned by one thread. Several shells may use one file: each adds whole lines.
class HistoryFile {
 public:
  /// The newest lines are kept, so many.
  static constexpr std::size_t kLinesMax = 1000;

  explicit HistoryFile(std::string path) : path_(std::move(path)) {}

  /// $XDG_STATE_HOME/pv2/shell_history, or that under ~/.local/state. Empty: there is no home.
  [[nodiscard]] static std::string usual_path();

  /// The oldest first. A file that is not there has no lines. Shortens a file that has become long.
  [[nodiscard]] Result<std::vector<std::string>> load() const;
  /// Makes the file, for its owner's eyes only, if it is not there.
  Status add(const std::string& line) const;

 private:
  const std::string path_;
};

}  // namespace pv2::shell
