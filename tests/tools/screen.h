// SPDX-License-Identifier: Apache-2.0
//
// Screen: what a person would see of the bytes that a program writes to a terminal. It knows the
// control sequences that line editors use, and refuses all others, so that a test finds a program
// that lets foreign ones through.

#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace pv2::testing {

/// Owned by one thread. It has no width: lines do not wrap.
class Screen {
 public:
  /// What it was written last may end within a sequence.
  void write(std::string_view bytes) {
    pending_ += bytes;
    std::size_t at = 0;
    while (at < pending_.size()) {
      const std::size_t used = take(std::string_view(pending_).substr(at));
      if (used == 0) break;
      at += used;
    }
    pending_.erase(0, at);
  }

  /// Without blanks at the ends of lines.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> trimmed = lines_;
    for (std::string& line : trimmed) line.erase(line.find_last_not_of(' ') + 1);
    return trimmed;
  }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const std::string& line : lines()) text += line + '\n';
    return text;
  }
  [[nodiscard]] std::string last_line() const { return lines().back(); }
  /// The sequences that it does not know, each with its ESC as '^'.
  [[nodiscard]] const std::string& foreign() const { return foreign_; }

 private:
  // How many bytes it has understood; 0: more have to come.
  std::size_t take(std::string_view bytes) {
    const char first = bytes.front();
    if (first == '\x1b') return take_sequence(bytes);
    if (first == '\r') {
      column_ = 0;
    } else if (first == '\n') {
      ++row_;
      if (row_ == lines_.size()) lines_.emplace_back();
    } else if (first == '\b') {
      if (column_ > 0) --column_;
    } else if (first == '\a') {
      // Nobody sees a bell.
    } else {
      std::string& line = lines_[row_];
      if (line.size() <= column_) line.resize(column_ + 1, ' ');
      line[column_++] = first;
    }
    return 1;
  }

  std::size_t take_sequence(std::string_view bytes) {
    if (bytes.size() < 2) return 0;
    if (bytes[1] != '[') return 2;  // keypad modes
    const std::size_t end = bytes.find_first_not_of("0123456789;?", 2);
    if (end == std::string_view::npos) return 0;
    const std::string argument(bytes.substr(2, end - 2));
    obey(bytes[end], argument.empty() ? 1 : static_cast<std::size_t>(std::atoi(argument.c_str())),
         argument);
    return end + 1;
  }

  void obey(char command, std::size_t count, const std::string& argument) {
    std::string& line = lines_[row_];
    switch (command) {
      case 'K':
      case 'J':
        line.resize(std::min(line.size(), column_));
        break;
      case 'A':
        row_ -= std::min(row_, count);
        break;
      case 'C':
        column_ += count;
        break;
      case 'D':
        column_ -= std::min(column_, count);
        break;
      case 'G':
        column_ = count - 1;
        break;
      case 'P':
        if (column_ < line.size()) line.erase(column_, count);
        break;
      case '@':
        if (column_ < line.size()) line.insert(column_, count, ' ');
        break;
      case 'm':
      case 'h':
      case 'l':
        break;
      default:
        foreign_ += "^[" + argument + command;
    }
  }

  std::vector<std::string> lines_{1};
  std::size_t row_ = 0;
  std::size_t column_ = 0;
  std::string pending_;
  std::string foreign_;
};

}  // namespace pv2::testing
