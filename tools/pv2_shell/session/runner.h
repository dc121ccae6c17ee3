// SPDX-License-Identifier: Apache-2.0
//
// Runner: takes statements from a script, a list, or a person, has each answered, and prints the
// answers. It knows when to go on after a failure, and which exit code that makes.

#pragma once

#include <cstdio>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <string_view>

#include "output/answer.h"
#include "session/shell.h"

namespace pv2::shell {

/// The exit codes of the program. Stable.
enum class ExitCode : std::uint8_t {
  kOk = 0,
  kFailed = 1,     ///< A statement failed, or is no statement; or an answer was not written.
  kBadOption = 2,  ///< The command line is wrong.
  kUnknown = 3,    ///< The outcome of a statement is unknown, or its procedure still runs.
  kNoCluster = 4,  ///< The cluster could not be started, or does not answer.
};
[[nodiscard]] ExitCode exit_code_of(Outcome outcome) noexcept;

struct RunnerOptions {
  bool json = false;
  bool quiet = false;       ///< Prints answers with rows or errors only.
  bool keep_going = false;  ///< A failure does not end a script or the statements of -e.
};

/// Owned by one thread.
class Runner {
 public:
  Runner(Shell& shell, RunnerOptions options, std::FILE* out, std::FILE* errors)
      : shell_(shell), options_(options), out_(out), errors_(errors) {}

  /// Runs one statement; `where` goes before its error: "script:3".
  Outcome run(const std::string& line, std::string_view where = {});
  /// Runs line by line, until one is not done. The exit code tells of the first one that is not.
  ExitCode run_script(std::istream& script, const std::string& name);
  /// Runs what `read` returns until it returns nothing. A failure is printed, and nothing more.
  void run_all(const std::function<std::optional<std::string>()>& read);

  /// Not OK: an answer could not be written. Whoever reads the answers misses it, so no script goes
  /// on.
  [[nodiscard]] const Status& output() const noexcept { return output_; }

 private:
  void print(const std::string& line, const Answer& answer, std::string_view where);
  void write(std::FILE* file, std::string_view text);

  Shell& shell_;
  const RunnerOptions options_;
  std::FILE* const out_;
  std::FILE* const errors_;
  Status output_{};
};

}  // namespace pv2::shell
