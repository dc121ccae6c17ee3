// SPDX-License-Identifier: Apache-2.0
//
// A carriage return, the text, and the sequence that erases the rest of the line.

#include "session/progress_line.h"

#include <sys/ioctl.h>

#include "language/escape.h"

namespace pv2::shell {
namespace {

constexpr std::string_view kEraseRest = "\x1b[K";

std::size_t width_of(std::FILE* terminal) {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  if (::ioctl(::fileno(terminal), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return size.ws_col;
}

void print(std::FILE* terminal, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), terminal);
  std::fflush(terminal);
}

}  // namespace

void ProgressLine::show(std::string_view text) {
  if (terminal_ == nullptr) return;
  // The last column stays free: a terminal may go to the next line when it is written.
  const std::string line = printable(text).substr(0, width_of(terminal_) - 1);
  if (line == shown_) return;
  shown_ = line;
  print(terminal_, "\r" + line + std::string(kEraseRest));
}

void ProgressLine::clear() {
  if (shown_.empty()) return;
  shown_.clear();
  print(terminal_, "\r" + std::string(kEraseRest));
}

}  // namespace pv2::shell
