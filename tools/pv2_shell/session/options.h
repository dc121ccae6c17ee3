// SPDX-License-Identifier: Apache-2.0
//
// What pv2-shell is asked to do by its command line.

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pv2::shell {

struct Options {
  std::string root{};
  std::string connect{};
  std::size_t servers = 3;
  std::string script{};                   ///< "-": standard input. Empty: none.
  std::vector<std::string> statements{};  ///< Run before the script.
  bool json = false;
  bool quiet = false;
  bool keep_going = false;
  bool history = true;

  [[nodiscard]] bool is_scripted() const { return !script.empty() || !statements.empty(); }
};

/// What a command line means: options, or a text to print and an exit code to end with.
struct ParsedOptions {
  Options options{};
  std::optional<int> exit_code{};
  std::string text{};
};

/// `arguments`: with the name of the program.
[[nodiscard]] ParsedOptions parse_options(std::span<char* const> arguments);

}  // namespace pv2::shell
