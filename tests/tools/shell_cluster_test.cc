// SPDX-License-Identifier: Apache-2.0
//
// Statements about procedures, locks, regions and processes, in a real cluster whose processes are
// killed meanwhile.

#include <filesystem>
#include <fstream>

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
  shell.must("abort " + lock + ", REASON => 'no need'");
  CHECK(shell.ask("wait " + lock).failed_with("ABORTED"));
  CHECK(shell.must("audit " + lock).has("no need"));
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
  // A variable that is not set.
  CHECK(ShellProcess({"--root", "", "-e", "list"}, errors).end() == 2);
  CHECK(ShellProcess({"--servers", "1", "-e", "create 't', 'f'", "-e", "lock_table 't'", "-e",
                      "disable 't', TIMEOUT => 1"},
                     errors)
            .end() == 3);
  const std::string unanswered = "list_procedures TIMEOUT => 1";
  CHECK(ShellProcess({"--servers", "1", "-e", "kill_master", "-e", unanswered}, errors).end() == 1);
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

}  // namespace pv2::testing::shell_cluster_test
