// SPDX-License-Identifier: Apache-2.0
//
// CLI11 reads the command line: it checks, and its help is made from the same declarations.

#include "session/options.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "session/runner.h"

namespace pv2::shell {
namespace {

// An empty one comes from a variable that is not set, and a temporary directory would be removed
// with all that was written.
std::string a_directory(const std::string& text) {
  return text.empty() ? "it names no directory; without --root there is a temporary one" : "";
}

std::string a_script(const std::string& text) {
  if (text.empty()) return "it names no script; without -f the statements are typed";
  std::error_code ignored;
  return std::filesystem::is_directory(text, ignored) ? text + " is a directory" : "";
}

}  // namespace

ParsedOptions parse_options(std::span<char* const> arguments) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  CLI::App app{
      "Starts a small cluster on this machine, a master and region servers, and answers statements "
      "about it. Exit codes: 0 all statements are done, 1 one failed, 2 a wrong option, 3 an "
      "outcome "
      "is unknown or a procedure still runs, 4 there is no cluster.",
      "pv2-shell"};
  auto* const root = app.add_option("--root", options.root,
                                    "the directory of the cluster, which is kept; a cluster that "
                                    "was there goes on (default: a temporary one, removed)")
                         ->check(a_directory);
  app.add_option("--connect", options.connect,
                 "the directory of a cluster that runs already; starts no process")
      ->excludes(root)
      ->check(CLI::ExistingDirectory);
  app.add_option("--servers", options.servers, "how many region servers to start (default: 3)")
      ->check(CLI::Range(1, 64));
  app.add_option("-f", options.script,
                 "runs the statements of a file, '-' for standard input, until one fails")
      ->check(a_script);
  app.add_option("-e", options.statements, "runs a statement; may be given several times")
      ->allow_extra_args(false);
  app.add_flag("--json", options.json, "prints each answer as one JSON object on one line");
  app.add_flag("--quiet", options.quiet, "prints only rows and errors");
  app.add_flag("--keep-going", options.keep_going,
               "goes on after a statement of -e or -f that is not done; the exit code tells of the "
               "first one");
  app.add_flag("!--no-history", options.history,
               "neither reads nor keeps the lines that are typed");
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::CallForHelp&) {
    parsed.exit_code = 0;
    parsed.text = app.help();
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = static_cast<int>(ExitCode::kBadOption);
    parsed.text = std::string("pv2-shell: ") + error.what() + "; --help lists the options\n";
  }
  return parsed;
}

}  // namespace pv2::shell
