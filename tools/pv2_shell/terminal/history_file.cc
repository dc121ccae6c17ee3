// SPDX-License-Identifier: Apache-2.0
//
// One line each, as typed: a statement has no newline. A file that has more than twice what is kept
// is replaced by a rename, so a crash leaves the old or the new one.

#include "terminal/history_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace pv2::shell {
namespace {

namespace fs = std::filesystem;

Status failed(const std::string& what, const std::string& path) {
  return {StatusCode::kIoError,
          "the history " + path + " cannot be " + what + ": " + std::strerror(errno)};
}

Status append(const std::string& path, const std::string& text, int flags) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
  if (file < 0) return failed("written", path);
  // One write: lines of two shells do not mix.
  const ssize_t written = ::write(file, text.data(), text.size());
  const bool whole = written == static_cast<ssize_t>(text.size());
  const Status status = whole ? Status() : failed("written", path);
  ::close(file);
  return status;
}

}  // namespace

std::string HistoryFile::usual_path() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0') {
    return std::string(state) + "/pv2/shell_history";
  }
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::string(home) + "/.local/state/pv2/shell_history";
}

Result<std::vector<std::string>> HistoryFile::load() const {
  std::error_code error;
  if (!fs::exists(path_, error) && !error) return std::vector<std::string>();
  std::ifstream file(path_);
  if (!file) return failed("read", path_);
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(file, line)) {
    if (!line.empty()) lines.push_back(line);
  }
  if (file.bad()) return failed("read", path_);  // the end of the file is missing
  if (lines.size() <= kLinesMax) return lines;
  const bool long_file = lines.size() > 2 * kLinesMax;
  lines.erase(lines.begin(), lines.end() - kLinesMax);
  if (!long_file) return lines;
  std::string text;
  for (const std::string& each : lines) text += each + '\n';
  const std::string next = path_ + ".new";
  if (append(next, text, O_TRUNC).ok()) fs::rename(next, path_, error);
  return lines;
}

Status HistoryFile::add(const std::string& line) const {
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);  // open() says if that failed
  return append(path_, line + '\n', O_APPEND);
}

}  // namespace pv2::shell
