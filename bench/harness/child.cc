// SPDX-License-Identifier: Apache-2.0
//
// Starts /proc/self/exe, because the name by which a program was called need not lead to it.

#include "harness/child.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "harness/work_folder.h"

extern char** environ;

namespace pv2::bench {
namespace {

std::string read_all(int file) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = read(file, buffer, sizeof buffer); got > 0;
       got = read(file, buffer, sizeof buffer)) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

ChildReport run_child(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe(ends) != 0) die("cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<std::string> texts = arguments;
  std::vector<char*> argv;
  std::string self = "/proc/self/exe";
  argv.push_back(self.data());
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ) != 0) {
    die("cannot start itself again");
  }
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::istringstream text(read_all(ends[0]));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    die(fmt::format("the child that was to {} failed", arguments.front()));
  }
  ChildReport report;
  std::string name;
  for (double value = 0; text >> name >> value;) report[name] = value;
  return report;
}

void report_to_parent(std::string_view name, double value) {
  fmt::print("{} {:.17g}\n", name, value);
  std::fflush(stdout);
}

void end_abruptly() {
  std::fflush(stdout);
  std::_Exit(0);
}

}  // namespace pv2::bench
