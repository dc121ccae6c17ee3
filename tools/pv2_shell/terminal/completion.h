// SPDX-License-Identifier: Apache-2.0
//
// Completion: what could be typed next. It is found from the table of commands and from the names
// that the cluster has now, without a terminal.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "commands/command.h"

namespace pv2::shell {

/// The names of a cluster that statements may mention. Thread: that of its user.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;
  /// The names that an argument may have. None: there are none, or the cluster does not answer
  /// soon.
  [[nodiscard]] virtual std::vector<std::string> names(Takes takes) = 0;
};

/// The word before the cursor, and what it could become. A plain value.
struct Completion {
  std::size_t begin = 0;  ///< Where the word begins in the line.
  /// Whole words, sorted: with their quotes, and with what always follows.
  std::vector<std::string> candidates{};

  /// What all candidates begin with.
  [[nodiscard]] std::string common() const;
};

/// `line`: up to the cursor. Any bytes are legal.
[[nodiscard]] Completion complete(std::string_view line, Vocabulary& vocabulary);

}  // namespace pv2::shell
