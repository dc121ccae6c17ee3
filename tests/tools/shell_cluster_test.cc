// SPDX-License-Identifier: Apache-2.0
//
// Statements about procedures, locks, regions and processes, in a real cluster whose processes are
// killed meanwhile.

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "support/temporary_directory.h"
#include "tools/shell_process.h"

namespace pv2::testing::shell_cluster_test {
namespace {

/// The ids of the regions of a table, in order of their start keys.
std::vector<std::string> regions_of(ShellProcess& shell, const std::string& table) {
  const JsonAnswer answer = shell.must("regions '" + table + "'");
  std::vector<std::string> ids;
  const std::regex id("\"region\":\"([0-9a-f]{16})\"");
  for (std::sregex_iterator each(answer.text.begin(), answer.text.end(), id), end; each != end;
       ++each) {
    ids.push_back((*each)[1]);
  }
  return ids;
}

/// Sends Ctrl-C to a shell that waits for its next line.
void interrupt_at_rest(pid_t pid) {
  while (!stat_of("/proc/" + std::to_string(pid)).starts_with("S")) ::sched_yield();
  REQUIRE(::kill(pid, SIGINT) == 0);
}

/// The exit code of a line of sh that runs the shell: of its variable $shell.
int exit_code_of_line(const std::string& line) {
  const std::string command = std::string("shell='") + PV2_SHELL + "'; " + line;
  const int status = std::system(command.c_str());  // NOLINT: the program is ours
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The exit code of a shell whose stdout is a pipe that nobody reads any more; -1: a signal ended
/// it.
int exit_code_into_broken_pipe(std::vector<std::string> options, const std::string& errors) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  ::close(ends[0]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  // This program ignores SIGPIPE; whoever starts a shell need not.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t pipe_signal;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  options.insert(options.begin(), "pv2-shell");
  std::vector<char*> argv;
  for (std::string& option : options) argv.push_back(option.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  REQUIRE(::posix_spawn(&pid, PV2_SHELL, &actions, &attributes, argv.data(), environ) == 0);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a create whose master is killed in the middle ends when another master starts") {
  ShellProcess shell = ShellProcess::talking();
  const std::string pid = shell.must("create 't', 'f', NUMREGIONS => 48, ASYNC").value("procedure");

  shell.must("kill_master");
  CHECK(shell.ask("kill_master").failed_with("NOT_FOUND"));
  shell.must("start_master");

  CHECK(shell.must("wait " + pid).has("has succeeded"));
  CHECK(shell.must("regions 't'").has("\"48 regions\""));
  CHECK(shell.must("procedure " + pid).has("{\"what\":\"state\",\"value\":\"SUCCESS\"}"));
  CHECK(shell.must("check").has("all is in order"));
}

TEST_CASE("a create that no master answers is unknown, and asking again creates once") {
  ShellProcess shell = ShellProcess::talking();
  shell.must("kill_master");

  const JsonAnswer unknown = shell.ask("create 't', 'f', {NUMREGIONS => 2}, TIMEOUT => 1");
  INFO(unknown.text);
  REQUIRE_FALSE(unknown.ok());
  // Nothing was sent, so it may also be known to have failed; then the same nonce may be used.
  const std::string again =
      unknown.is("unknown")
          ? unknown.value("again")
          : "create 't', 'f', {NUMREGIONS => 2}, NONCE => '" + unknown.value("nonce") + "'";
  shell.must("start_master");

  const JsonAnswer first = shell.must(again);
  const JsonAnswer second = shell.must(again);

  CHECK(first.value("procedure") == second.value("procedure"));
  CHECK(first.value("nonce") == unknown.value("nonce"));
  CHECK(shell.must("list").has("\"1 table\""));
}

TEST_CASE("Ctrl-C between statements ends neither a script nor a statement that is half written") {
  ShellProcess shell = ShellProcess::talking();
  shell.must("list");
  interrupt_at_rest(shell.pid());
  shell.must("list");
  shell.write("create 't'");
  interrupt_at_rest(shell.pid());
  shell.must(", 'f'");
  CHECK(shell.must("list").has("\"1 table\""));
  interrupt_at_rest(shell.pid());
  shell.write("list");  // a last line without an end

  CHECK(shell.end() == 0);
  CHECK(shell.read_all().find("\"1 table\"") != std::string::npos);
}

TEST_CASE("a lock that is still waited for has the statement that goes on waiting") {
  ShellProcess shell = ShellProcess::talking();
  shell.must("create 't', 'f'");
  const std::string first = shell.must("lock_table 't'").value("procedure");
  const JsonAnswer waits = shell.ask("lock_table 't', TIMEOUT => 1");
  CHECK(waits.is("running"));
  shell.must("unlock " + first);
  const JsonAnswer held = shell.must(waits.value("again"));

  CHECK(held.has("holds the lock"));
  CHECK(held.value("procedure") == waits.value("procedure"));
}

TEST_CASE("a lock that a person holds is listed with who waits for it, and explained") {
  ShellProcess shell = ShellProcess::talking();
  shell.must("create 't', 'f'");
  const std::string lock = shell.must("lock_table 't', WHY => 'backup'").value("procedure");

  const JsonAnswer waits = shell.ask("disable 't', TIMEOUT => 1");
  CHECK(waits.is("running"));
  const std::string disable = waits.value("procedure");
  CHECK(waits.value("again") == "wait " + disable);
  CHECK(shell.ask("wait " + disable + ", TIMEOUT => 0").is("running"));
  CHECK(shell.must("explain " + disable).has("default:t"));
  CHECK(shell.must("explain " + disable).has("look first at: " + lock));
  const JsonAnswer locks = shell.must("list_locks WAITED_FOR");
  CHECK(locks.has("\"lock\":\"table default:t\",\"role\":\"holds\",\"mode\":\"exclusive\",\"id\":" +
                  lock));
  CHECK(locks.has("\"lock\":\"table default:t\",\"role\":\"waits\",\"mode\":\"exclusive\",\"id\":" +
                  disable));
  CHECK(shell.must("list_procedures TYPE => 'DisableTable'").has("\"1 procedure\""));
  CHECK(shell.must("procedure " + disable).has("{\"what\":\"wants\""));

  shell.must("renew_lock " + lock);
  CHECK(shell.must("unlock " + lock).has("unlocked"));
  CHECK(shell.must("wait " + disable).has("has succeeded"));
  CHECK(shell.must("wait " + disable + ", TIMEOUT => 0").has("has succeeded"));
  CHECK(shell.ask("wait 4711, TIMEOUT => 0").failed_with("NOT_FOUND"));
  CHECK(shell.must("list_procedures ALL").has("\"0 procedures\""));
  CHECK(shell.ask("wait 4711").failed_with("NOT_FOUND"));
}

TEST_CASE("an operator previews an order, and one that does not fit is refused") {
  ShellProcess shell = ShellProcess::talking();
  const std::string lock = shell.must("lock_namespace 'default'").value("procedure");

  const JsonAnswer preview = shell.must("retry " + lock);
  CHECK(preview.has("\"it_would\":"));
  CHECK(preview.has("nothing is changed"));
  CHECK(shell.ask("skip_step " + lock + ", WHY => 'test'").failed_with("FAILED_PRECONDITION"));
  CHECK(shell.must("audit " + lock).has("\"rows\":[]"));
  // Somebody who names an order means to give it.
  CHECK(shell.ask("retry " + lock + ", NONCE => '1-2'").has("WHY is missing"));
  CHECK(shell.ask("retry " + lock + ", RESUME => '1-2'").failed_with("INVALID_ARGUMENT"));
  CHECK(shell.ask("skip_step " + lock + ", WHY => 'x', NEXT_STEP => 4294967297")
            .failed_with("INVALID_ARGUMENT"));
  shell.must("abort " + lock + ", REASON => 'no need'");
  CHECK(shell.ask("wait " + lock).failed_with("ABORTED"));
  CHECK(shell.must("audit " + lock).has("no need"));
  CHECK(shell.must("audit " + lock + ", BEFORE => 1").has("\"0 orders\""));
}

TEST_CASE("an order is carried out once under its nonce, and another order under it is refused") {
  ShellProcess shell = ShellProcess::talking();
  const std::string lock = shell.must("lock_table 't', WHY => 'a test'").value("procedure");
  const std::string order = "roll_back " + lock + ", WHY => 'not wanted'";

  const JsonAnswer first = shell.must(order + ", NONCE => '5-6'");
  CHECK(first.has("done to procedure " + lock));
  CHECK(shell.ask("wait " + lock).failed_with("ABORTED"));
  const std::string resumed = ", RESUME => '" + first.value("nonce") + "'";
  CHECK(shell.must(order + resumed).has("carried out already"));
  shell.must("kill_master");
  shell.must("start_master");
  CHECK(shell.must(order + resumed).has("carried out already"));

  const JsonAnswer refused = shell.ask("skip_step " + lock + ", WHY => 'x', RESUME => '5-7'");
  CHECK(refused.is("unknown"));
  CHECK(refused.failed_with("FAILED_PRECONDITION"));
  CHECK(refused.value("again") == "audit " + lock);

  const std::string other = "bypass " + lock + ", WHY => 'not wanted', NONCE => '5-6'";
  CHECK(shell.ask(other).failed_with("KEY_REUSED"));
  const JsonAnswer audit = shell.must("audit " + lock);
  CHECK(audit.has("\"1 order\""));
  CHECK(audit.value("nonce") == "5-6");
}

TEST_CASE("an order that no master answers is sent again under its nonce") {
  ShellProcess shell = ShellProcess::talking();
  const std::string lock = shell.must("lock_table 't', WHY => 'a test'").value("procedure");
  const std::string order = "roll_back " + lock + ", WHY => 'not wanted'";
  shell.must("kill_master");

  const JsonAnswer lost = shell.ask(order + ", TIMEOUT => 1");
  shell.must("start_master");
  const std::string nonce = lost.value("nonce");
  CHECK_FALSE(lost.is("done"));
  // Nothing was sent, so it may also be known to have failed; then the same nonce may be used.
  CHECK(shell.must(order + (lost.is("unknown") ? ", RESUME => '" : ", NONCE => '") + nonce + "'")
            .has("done to procedure " + lock));

  CHECK(shell.ask("wait " + lock).failed_with("ABORTED"));
  const JsonAnswer audit = shell.must("audit " + lock);
  CHECK(audit.has("\"1 order\""));
  CHECK(nonce.starts_with(audit.value("nonce")));
}

TEST_CASE("what is the same when it is done twice is told as done when it is asked for again") {
  ShellProcess shell = ShellProcess::talking();
  shell.must("create 't', 'f'");
  const std::string first = shell.must("lock_table 't'").value("procedure");
  const std::string disable = shell.must("disable 't', ASYNC").value("procedure");
  const std::string enabling = "abort " + disable;

  shell.must(enabling + ", REASON => 'no need'");
  CHECK(shell.ask("wait " + disable).failed_with("ABORTED"));
  CHECK(shell.must(enabling).has("was aborted already"));
  shell.must("renew_lock " + first);
  shell.must("renew_lock " + first);
  CHECK(shell.must("unlock " + first).has("unlocked"));
  CHECK(shell.must("unlock " + first).has("was unlocked already"));
  shell.must("flush 't'");
  shell.must("flush 't'");
  // What has ended in another way was neither unlocked nor aborted.
  const std::string second = shell.must("lock_table 't'").value("procedure");
  shell.must(enabling + ", REASON => 'again'");
  CHECK_FALSE(shell.ask("abort " + first).ok());
  shell.must("abort " + second);
  CHECK(shell.ask("wait " + second).failed_with("ABORTED"));
  CHECK_FALSE(shell.ask("unlock " + second).ok());
  CHECK(shell.ask("unlock 4711").failed_with("NOT_FOUND"));
}

TEST_CASE("an unlock and an abort that no master answers are unknown, and may be asked for again") {
  ShellProcess shell = ShellProcess::talking();
  shell.must("create 't', 'f'");
  const std::string lock = shell.must("lock_table 't'").value("procedure");
  const std::string disable = shell.must("disable 't', ASYNC").value("procedure");
  const std::vector<pid_t> children = children_of(shell.pid());
  const pid_t master = *std::min_element(children.begin(), children.end());  // it is the first one
  // Now the client knows the run of the master, and sends at once.
  shell.must("renew_lock " + lock);

  for (const std::string& statement : {"abort " + disable, "unlock " + lock}) {
    stop_process(master);
    const JsonAnswer lost = shell.ask(statement + ", TIMEOUT => 1");
    ::kill(master, SIGCONT);
    INFO(lost.text);
    CHECK(lost.is("unknown"));
    CHECK(shell.must(lost.value("again") + "0").ok());  // with ten times the time
  }
  CHECK(shell.ask("wait " + disable).failed_with("ABORTED"));
  CHECK(shell.must("wait " + lock).has("unlocked"));
}

TEST_CASE("regions are split, merged and moved, and the cluster is in order after each") {
  ShellProcess shell = ShellProcess::talking();
  shell.must("create 't', 'f', SPLITS => ['m']");
  for (const char row : std::string("abcnop")) {
    shell.must(std::string("put 't', '") + row + "', 'f:q', 'v'");
  }
  CHECK(shell.must("flush 't'").has("2 regions flushed"));

  shell.must("split 't', 'b'");
  std::vector<std::string> ids = regions_of(shell, "t");
  REQUIRE(ids.size() == 3);
  CHECK(shell.ask("split 't', 'b'").failed_with("INVALID_ARGUMENT"));
  shell.must("merge '" + ids[0] + "', '" + ids[1].substr(0, 6) + "'");
  CHECK(regions_of(shell, "t").size() == 2);
  CHECK(shell.must("check").has("all is in order"));

  shell.must("compact 't'");
  const std::string last = regions_of(shell, "t")[1];
  const JsonAnswer moved = shell.must("move '" + last + "', 'rs2'");
  CHECK(moved.has("rs2,"));
  CHECK_FALSE(shell.must("move '" + last + "'").has("rs2,"));
  shell.must("unassign '" + last + "'");
  shell.must("assign '" + last + "'");
  CHECK(shell.must("split '" + last + "'").has("has succeeded"));
  CHECK(shell.ask("split 'beef'").failed_with("NOT_FOUND"));
  CHECK(shell.must("count 't'").has("{\"rows\":6}"));
  CHECK(shell.must("check").has("all is in order"));
}

TEST_CASE("servers are started, paused, stopped and killed, and no row is lost") {
  ShellProcess shell = ShellProcess::talking({"--servers", "2"});
  shell.must("create 't', 'f', NUMREGIONS => 4");
  shell.must("put 't', 'a', 'f:q', 'kept'");
  CHECK(shell.must("servers").has("\"2 live servers\""));

  shell.must("start_server 'rs3'");
  CHECK(shell.ask("start_server 'rs3'").failed_with("FAILED_PRECONDITION"));
  CHECK(shell.ask("start_server '../x'").failed_with("INVALID_ARGUMENT"));
  shell.must("pause_server 'rs3'");
  shell.must("resume_server 'rs3'");
  CHECK(shell.ask("kill_server 'rs9'").failed_with("NOT_FOUND"));
  shell.must("stop_server 'rs1'");
  shell.must("kill_server 'rs2'");

  // The rows come back on the server that is left; the read waits for them.
  CHECK(shell.must("get 't', 'a'").has("kept"));
  CHECK(shell.must("status").has("{\"what\":\"tables\",\"value\":1}"));
}

TEST_CASE("a flush whose server is killed is done where the region is next") {
  ShellProcess shell = ShellProcess::talking({"--servers", "1"});
  shell.must("create 't', 'f'");
  shell.must("start_server 'rs2'");
  shell.must("move '" + regions_of(shell, "t").front() + "', 'rs2'");
  shell.must("put 't', 'a', 'f:q', 'kept'");
  shell.must("flush 't'");
  shell.must("kill_server 'rs2'");

  CHECK(shell.must("flush 't', TIMEOUT => 100").has("1 region flushed"));
}

TEST_CASE("a check of a cluster without servers ends when its time is over") {
  ShellProcess shell = ShellProcess::talking({"--servers", "1"});
  shell.must("kill_server 'rs1'");

  CHECK(shell.ask("check TIMEOUT => 1").failed_with("DEADLINE_EXCEEDED"));
  CHECK(shell.ask("list_peers TIMEOUT => 1").failed_with("DEADLINE_EXCEEDED"));
}

TEST_CASE("an abort that was given up is not carried out by a later master") {
  ShellProcess shell = ShellProcess::talking({"--servers", "1"});
  const std::string lock = shell.must("lock_table 't'").value("procedure");
  shell.must("kill_master");

  CHECK_FALSE(shell.ask("abort " + lock + ", TIMEOUT => 1").ok());
  shell.must("start_master");

  CHECK(shell.ask("wait " + lock + ", TIMEOUT => 3").is("running"));
}

TEST_CASE("a second shell joins the cluster of the first one, and cannot kill its processes") {
  const TemporaryDirectory directory;
  const std::string root = directory.path("cluster");
  ShellProcess owner = ShellProcess::talking({"--root", root});
  owner.must("create 't', 'f'");

  ShellProcess guest = ShellProcess::talking({"--connect", root});
  guest.must("put 't', 'a', 'f:q', 'from the guest'");
  CHECK(guest.ask("kill_master").failed_with("FAILED_PRECONDITION"));
  CHECK(guest.end() == 1);

  CHECK(owner.must("get 't', 'a'").has("from the guest"));
  CHECK(owner.end() == 0);
  // The directory was kept, and the cluster in it goes on.
  ShellProcess later = ShellProcess::talking({"--root", root});
  CHECK(later.must("get 't', 'a'").has("from the guest"));
}

TEST_CASE("a peer whose file is damaged is listed as such, and the others are changed") {
  const TemporaryDirectory directory;
  const std::string root = directory.path("cluster");
  ShellProcess shell = ShellProcess::talking({"--root", root});
  shell.must("add_peer 'bad', CLUSTER => '/nowhere/a', DISABLED");
  shell.must("add_peer 'good', CLUSTER => '/nowhere/b', DISABLED");
  std::ofstream(root + "/peers/bad/config") << "no frame";

  const JsonAnswer list = shell.must("list_peers");
  CHECK(list.has("\"DAMAGED\""));
  CHECK(list.has("peer 'bad' cannot be read"));
  CHECK(list.has("/nowhere/b"));
  CHECK(list.has("\"2 peers\""));
  CHECK(shell.ask("check").has("peer bad cannot be read"));
  shell.must("update_peer 'good', TABLES => ['t']");
  CHECK(shell.ask("update_peer 'bad', TABLES => ['t']").failed_with("CORRUPTION"));
  shell.must("remove_peer 'bad'");
  CHECK(shell.must("check").has("all is in order"));

  CHECK(shell.ask("add_peer 'none', CLUSTER => ''").has("CLUSTER is empty"));
  CHECK(shell.ask("update_peer 'good', CLUSTER => ''").failed_with("INVALID_ARGUMENT"));

  // A link to the cluster itself.
  const std::string link = directory.path("link");
  std::filesystem::create_directory_symlink(root, link);
  const JsonAnswer own = shell.ask("add_peer 'own', CLUSTER => '" + link + "'");
  CHECK(own.failed_with("FAILED_PRECONDITION"));
  CHECK(own.has("is this cluster itself"));
}

TEST_CASE("a shell that is killed takes the processes of its cluster with it") {
  ShellProcess shell = ShellProcess::talking();
  shell.must("list");
  const std::vector<pid_t> processes = children_of(shell.pid());
  REQUIRE(processes.size() == 4);

  ::kill(shell.pid(), SIGKILL);
  CHECK(shell.end() == -1);

  for (const pid_t process : processes) CHECK(has_ended(process));
}

TEST_CASE("a script ends at the first statement that fails, and says where it stands") {
  const TemporaryDirectory directory;
  const std::string script = directory.path("script.pv");
  const std::string errors = directory.path("errors");
  std::ofstream(script) << "# three lines\nlist\nlits\nlist\n";

  ShellProcess shell({"--servers", "1", "-f", script}, errors);
  const std::string printed = shell.read_all();

  CHECK(shell.end() == 1);
  CHECK(printed == "0 tables\n");
  CHECK(read_file(errors) == script +
                                 ":3: ERROR INVALID_ARGUMENT: column 1: there is no command lits; "
                                 "did you mean list?\n");
  CHECK(ShellProcess({"--servers", "1", "--quiet", "-e", "list", "-e", "exit"}).end() == 0);
  CHECK(ShellProcess({"--nonsense"}, errors).end() == 2);
  CHECK(ShellProcess({"--servers", "0"}, errors).end() == 2);
  CHECK(ShellProcess({"--root", "/dev/null/x"}, errors).end() == 4);
  CHECK(ShellProcess({"-f", "/dev/null/x", "--servers", "1"}, errors).end() == 2);
  CHECK(ShellProcess({"-f", "/"}, errors).end() == 2);
  CHECK(ShellProcess({"-f", ""}, errors).end() == 2);
  // A variable that is not set.
  CHECK(ShellProcess({"--root", "", "-e", "list"}, errors).end() == 2);
  CHECK(ShellProcess({"--servers", "1", "-e", "create 't', 'f'", "-e", "lock_table 't'", "-e",
                      "disable 't', TIMEOUT => 1"},
                     errors)
            .end() == 3);
  const std::string unanswered = "list_procedures TIMEOUT => 1";
  CHECK(ShellProcess({"--servers", "1", "-e", "kill_master", "-e", unanswered}, errors).end() == 1);
}

TEST_CASE("with --keep-going a statement that is not done does not end the ones behind it") {
  const TemporaryDirectory directory;
  const std::string errors = directory.path("errors");
  const std::string script = directory.path("script");
  std::ofstream(script) << "third\n";
  const std::vector<std::string> options{"--servers", "1",  "-e",   "first",       "-e",
                                         "second",    "-f", script, "--keep-going"};
  CHECK(ShellProcess(options, errors).end() == 1);
  const std::string said = read_file(errors);
  for (const char* statement : {"first", "second", "third"}) {
    CHECK_THAT(said, ContainsSubstring(statement));
  }
  const std::string only_first = directory.path("only first");
  CHECK(ShellProcess({options.begin(), options.end() - 1}, only_first).end() == 1);
  CHECK_THAT(read_file(only_first), !ContainsSubstring("second"));
}

TEST_CASE("a cluster that does not start says why, also if its directory is removed") {
  const TemporaryDirectory directory;
  const std::string errors = directory.path("errors");
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const struct rlimit few { 12, before.rlim_max };
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  std::optional<ShellProcess> shell;
  shell.emplace(std::vector<std::string>{"--servers", "1", "-e", "list"}, errors);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(shell->end() == 4);
  CHECK_THAT(read_file(errors), ContainsSubstring("did not start; its messages say why; the last"));
}

TEST_CASE("a script may begin with a byte order mark") {
  const TemporaryDirectory directory;
  const std::string script = directory.path("script");
  std::ofstream(script) << "\xEF\xBB\xBF"
                        << "help 'scan'\nlist\n";
  const std::string errors = directory.path("errors");
  CHECK(ShellProcess({"--servers", "1", "-f", script}, errors).end() == 0);
  std::ofstream(script) << "list\n\xEF\xBB\xBFlist\n";
  CHECK(ShellProcess({"--servers", "1", "-f", script}, errors).end() == 1);
}

TEST_CASE("an answer that cannot be written is a failure, and ends the script") {
  const TemporaryDirectory directory;
  const std::string script = directory.path("script");
  std::ofstream(script) << "list\nskan 't'\n";
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"-e", "list", "-e", "skan 't'"}, {"--keep-going", "-f", script}}) {
    const std::string errors = directory.path("errors" + options.front());
    std::vector<std::string> all{"--servers", "1"};
    all.insert(all.end(), options.begin(), options.end());
    CHECK(ShellProcess(all, errors, "/dev/full").end() == 1);
    const std::string said = read_file(errors);
    CHECK_THAT(said, ContainsSubstring("an answer could not be written: No space left"));
    CHECK_THAT(said, !ContainsSubstring("skan"));
  }
}

TEST_CASE("a shell whose standard files are closed fails if it cannot write its answers") {
  const TemporaryDirectory directory;
  const std::string root = directory.path("cluster");
  const std::string errors = directory.path("errors");
  const std::string answers = directory.path("answers");
  ShellProcess owner = ShellProcess::talking({"--root", root});
  owner.must("create 't', 'f'");
  for (const std::string& cluster : {"--connect '" + root + "'", std::string("--servers 1")}) {
    INFO(cluster);
    const std::string list = "$shell --no-history " + cluster + " -e list ";
    CHECK(exit_code_of_line(list + "<&- 2>&- >'" + answers + "'") == 0);
    CHECK_THAT(read_file(answers), ContainsSubstring(cluster[2] == 'c' ? "1 table" : "0 tables"));
    for (const char* const closed : {">&-", "<&- >&-"}) {
      std::filesystem::remove(errors);
      CHECK(exit_code_of_line(list + closed + " 2>'" + errors + "'") == 1);
      CHECK_THAT(read_file(errors), ContainsSubstring("an answer could not be written"));
    }
    CHECK(exit_code_of_line(list + "<&- >&- 2>&-") == 1);
  }
  // What is closed has no statements.
  const std::string reads = "$shell --json --connect '" + root + "' <&- >'" + answers + "'";
  CHECK(exit_code_of_line(reads) == 0);
  CHECK(read_file(answers).empty());
  CHECK(exit_code_of_line("$shell --help >&-") == 1);
  CHECK(owner.must("list").has("\"1 table\""));
}

TEST_CASE("a shell whose answers nobody reads ends with an error, and of no signal") {
  const TemporaryDirectory directory;
  const std::string root = directory.path("cluster");
  const std::string script = directory.path("script");
  ShellProcess owner = ShellProcess::talking({"--root", root});
  owner.must("list");  // it is up
  std::ofstream(script) << "list\nskan 't'\n";
  for (const std::vector<std::string>& cluster :
       {std::vector<std::string>{"--connect", root}, {"--servers", "1"}}) {
    const std::string errors = directory.path("errors" + cluster.front());
    std::vector<std::string> options = cluster;
    options.insert(options.end(), {"-f", script});
    CHECK(exit_code_into_broken_pipe(options, errors) == 1);
    CHECK_THAT(read_file(errors), ContainsSubstring("could not be written: Broken pipe"));
    CHECK_THAT(read_file(errors), !ContainsSubstring("skan"));
  }
}

}  // namespace pv2::testing::shell_cluster_test
