// SPDX-License-Identifier: Apache-2.0
//
// The shell at a terminal: history, completion, Ctrl-C, the line that shows progress, and its ends.

#include "tools/terminal.h"

#include <filesystem>

#include "support/temporary_directory.h"

namespace pv2::testing::terminal_test {
namespace {

constexpr const char* kUp = "\x1b[A";
constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";

}  // namespace

TEST_CASE("lines are remembered by the next shell, unless that is turned off") {
  if (!Terminal::is_possible()) return;
  const TemporaryDirectory directory;
  const std::string root = directory.path("cluster");
  const std::string state = directory.path("state");
  const std::string file = state + "/pv2/shell_history";
  {
    Terminal shell({"--root", root}, state);
    REQUIRE(shell.prompts(1));
    shell.type("list  # tables\n");
    REQUIRE(shell.prompts(2));
    ::kill(shell.pid(), SIGKILL);  // a line is kept before it runs
  }
  CHECK(read_file(file) == "list  # tables\n");
  CHECK((std::filesystem::status(file).permissions() & std::filesystem::perms::others_read) ==
        std::filesystem::perms::none);

  Terminal shell({"--root", root, "--no-history"}, state);
  REQUIRE(shell.prompts(1));
  shell.type("status\n");
  REQUIRE(shell.prompts(2));
  shell.type(kCtrlD);
  CHECK(shell.end() == 0);
  CHECK(read_file(file) == "list  # tables\n");

  Terminal last({"--root", root}, state, "xterm");
  REQUIRE(last.prompts(1));
  last.type(kUp);
  CHECK(last.shows("pv2> list  # tables"));
  last.type("\n");
  CHECK(last.shows("0 tables"));
}

TEST_CASE("Tab completes commands, names that the cluster has, and options") {
  if (!Terminal::is_possible()) return;
  const TemporaryDirectory directory;
  Terminal shell({"--no-history"}, directory.path("state"));
  REQUIRE(shell.prompts(1));
  shell.type("create 'things', 'f'\n");
  REQUIRE(shell.prompts(2));

  shell.type("descr\t");
  CHECK(shell.shows("pv2> describe"));
  shell.type("'th\t\n");
  CHECK(shell.shows("table default:things is ENABLED"));
  REQUIRE(shell.prompts(3));
  shell.type("scan 'things', LIM\t1\n");
  CHECK(shell.shows("pv2> scan 'things', LIMIT => 1"));
  REQUIRE(shell.prompts(4));
  shell.type("kill_\t\t");
  CHECK(shell.shows("\nkill_master\n"));
  CHECK(shell.shows("\nkill_server\n"));
}

TEST_CASE("Ctrl-C gives a line up or stops a wait, and neither the procedure nor the shell") {
  if (!Terminal::is_possible()) return;
  const TemporaryDirectory directory;
  Terminal shell({"--no-history"}, directory.path("state"), "xterm");
  REQUIRE(shell.prompts(1));
  shell.type("drop 'everyth");
  REQUIRE(shell.shows("drop 'everyth"));
  shell.type(kCtrlC);
  REQUIRE(shell.prompts(2));
  shell.type("create 't', 'f'\n");
  REQUIRE(shell.prompts(3));
  shell.type("lock_table 't'\n");
  REQUIRE(shell.prompts(4));
  shell.type("disable 't'\n");

  // The line that shows progress is there while it waits, and gone afterwards.
  REQUIRE(shell.shows("DisableTable, step PREPARE"));
  REQUIRE(shell.shows("default:t, held by procedure"));
  shell.type(kCtrlC);
  REQUIRE(shell.shows("STILL RUNNING: ABORTED: procedure"));
  REQUIRE(shell.prompts(5));
  CHECK(shell.screen().text().find("DisableTable, step PREPARE") == std::string::npos);

  shell.type("list_procedures\n");
  CHECK(shell.shows("2 procedures"));
  CHECK(shell.screen().foreign().empty());
  // The processes of the cluster have not heard Ctrl-C.
  CHECK(children_of(shell.pid()).size() == 4);
}

TEST_CASE("SIGTERM ends the shell as exit does, with its cluster and its temporary directory") {
  if (!Terminal::is_possible()) return;
  const TemporaryDirectory directory;
  Terminal shell({"--no-history"}, directory.path("state"));
  REQUIRE(shell.prompts(1));
  const std::vector<pid_t> processes = children_of(shell.pid());
  CHECK(processes.size() == 4);
  const std::string text = shell.screen().text();
  const std::string before = "The cluster is in ";
  const std::size_t begin = text.find(before) + before.size();
  const std::string root = text.substr(begin, text.find(". help") - begin);
  CHECK(std::filesystem::exists(root));

  ::kill(shell.pid(), SIGTERM);

  CHECK(shell.end() == 0);
  for (const pid_t process : processes) CHECK(has_ended(process));
  CHECK_FALSE(std::filesystem::exists(root));
}

}  // namespace pv2::testing::terminal_test
