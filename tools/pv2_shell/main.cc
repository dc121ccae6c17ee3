// SPDX-License-Identifier: Apache-2.0
//
// pv2-shell: starts a cluster, or joins one, and answers statements about it until it is told to
// end. The program starts itself again for the processes of the cluster.

#include <pv2/base/standard_files.h>
#include <pv2/cluster/cluster_processes.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "language/escape.h"
#include "session/cluster_session.h"
#include "session/interrupts.h"
#include "session/options.h"
#include "session/runner.h"
#include "session/shell.h"
#include "terminal/cluster_vocabulary.h"
#include "terminal/history_file.h"
#include "terminal/line_editor.h"

namespace pv2::shell {
namespace {

void complain(const std::string& what) {
  std::fprintf(stderr, "pv2-shell: %s\n", printable(what).c_str());
}

ExitCode run_script(const Options& options, Runner& runner) {
  if (options.script == "-") return runner.run_script(std::cin, "stdin");
  std::ifstream file(options.script);
  if (!file) {
    complain("cannot read the script " + options.script);
    return ExitCode::kBadOption;
  }
  return runner.run_script(file, options.script);
}

ExitCode run_scripted(const Options& options, Shell& shell, Runner& runner) {
  ExitCode code = ExitCode::kOk;
  for (const std::string& statement : options.statements) {
    if (shell.has_ended()) return code;
    const Outcome outcome = runner.run(statement, "-e");
    if (code == ExitCode::kOk) code = exit_code_of(outcome);
    if (!runner.output().ok() || (code != ExitCode::kOk && !options.keep_going)) return code;
  }
  if (options.script.empty()) return code;
  const ExitCode of_script = run_script(options, runner);
  return code == ExitCode::kOk ? of_script : code;
}

// What was done is done, but whoever asked for it was not told.
int exit_code(ExitCode of_statements, const Runner& runner) {
  if (runner.output().ok()) return static_cast<int>(of_statements);
  complain(runner.output().to_string());
  return static_cast<int>(of_statements == ExitCode::kOk ? ExitCode::kFailed : of_statements);
}

void talk(const Options& options, Shell& shell, Runner& runner) {
  const std::string path = options.history ? HistoryFile::usual_path() : std::string();
  const HistoryFile history(path);
  std::vector<std::string> lines;
  if (!path.empty()) {
    auto loaded = history.load();
    if (loaded.ok()) lines = *std::move(loaded);
  }
  ClusterVocabulary vocabulary(shell);
  LineEditor editor("pv2> ", lines,
                    [&](std::string_view line) { return complete(line, vocabulary); });
  runner.run_all([&]() -> std::optional<std::string> {
    while (true) {
      LineEditor::Line line = editor.read();
      if (line.kind == LineEditor::Line::Kind::kEnd) return std::nullopt;
      if (line.kind == LineEditor::Line::Kind::kInterrupted) continue;
      if (line.text.find_first_not_of(' ') != std::string::npos) {
        editor.remember(line.text);
        if (!path.empty()) static_cast<void>(history.add(line.text));
      }
      return line.text;
    }
  });
}

int run(Options options) {
  const bool types = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  // What comes through a pipe is a script.
  if (!options.is_scripted() && !types) options.script = std::string("-");
  const bool talks = !options.is_scripted();
  if (talks && !options.quiet && options.connect.empty()) {
    std::printf("Starting a master and %zu region servers ...\n", options.servers);
    std::fflush(stdout);
  }
  auto session = ClusterSession::open(
      {.root = options.root, .connect = options.connect, .servers = options.servers});
  if (!session.ok()) {
    complain(session.status().to_string());
    return static_cast<int>(ExitCode::kNoCluster);
  }
  const Interrupts interrupts;
  const char* const kind = std::getenv("TERM");
  const bool erases = kind != nullptr && std::string_view(kind) != "dumb";
  const bool shows_progress = types && erases && !options.json && !options.quiet;
  Shell shell((*session)->client(), (*session)->root(), (*session)->processes(),
              shows_progress ? stdout : nullptr);
  Runner runner(shell,
                {.json = options.json, .quiet = options.quiet, .keep_going = options.keep_going},
                stdout, stderr);
  if (!talks) return exit_code(run_scripted(options, shell, runner), runner);
  if (!options.quiet) {
    std::printf("The cluster is in %s. help lists the commands, exit ends.\n",
                printable((*session)->root()).c_str());
  }
  talk(options, shell, runner);
  return exit_code(ExitCode::kOk, runner);
}

int main_of_the_shell(std::span<char* const> arguments) {
  const auto process = cluster::run_as_cluster_process(arguments.subspan(1));
  if (process) return *process;
  const ParsedOptions parsed = parse_options(arguments);
  if (!parsed.exit_code) return run(parsed.options);
  std::FILE* const out = *parsed.exit_code == 0 ? stdout : stderr;
  const bool written = std::fputs(parsed.text.c_str(), out) >= 0 && std::fflush(out) == 0;
  return written || *parsed.exit_code != 0 ? *parsed.exit_code
                                           : static_cast<int>(ExitCode::kFailed);
}

}  // namespace
}  // namespace pv2::shell

int main(int argc, char** argv) {
  pv2::reserve_standard_files();
  // A pipe without a reader is an answer that cannot be written. Processes of a cluster ignore the
  // signal as well.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return pv2::shell::main_of_the_shell(
        std::span<char* const>(argv, static_cast<std::size_t>(argc)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pv2-shell: %s\n", error.what());
    return 1;
  }
}
