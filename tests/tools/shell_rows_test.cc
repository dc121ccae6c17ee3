// SPDX-License-Identifier: Apache-2.0
//
// Statements about rows and tables, in a real cluster.

#include "tools/shell_process.h"

namespace pv2::testing::shell_rows_test {

TEST_CASE("rows are written, read, counted and removed by statements") {
  ShellProcess shell = ShellProcess::talking();
  CHECK(shell.must("create 't', 'f', 'g', {SPLITS => ['m']}").has("\"procedure\":"));

  CHECK(shell.must("put 't', 'a', 'f:q', 'one'").has("\"nonce\":\""));
  shell.must("put 't', 'z', 'g:q', 'two'");
  CHECK(shell.must("append 't', 'a', 'f:q', ' more'").value("value") == "one more");
  CHECK(shell.must("incr 't', 'a', 'f:n', 5").value("value") == "5");
  CHECK(shell.must("incr 't', 'a', 'f:n'").value("value") == "6");

  CHECK(shell.must("get 't', 'a'")
            .has("\"rows\":[{\"column\":\"f:n\",\"value\":\"6\"},"
                 "{\"column\":\"f:q\",\"value\":\"one more\"}]"));
  CHECK(shell.must("get 't', 'a', COLUMNS => ['f:q']").has("\"1 cell\""));
  CHECK(shell.must("get 't', 'a', COLUMNS => 'g'").has("\"rows\":[]"));
  CHECK(shell.must("scan 't'").has("\"2 rows\""));
  CHECK(shell.must("scan 't', LIMIT => 1").has("there may be more: STARTROW => "));
  CHECK(shell.must("scan 't', {STARTROW => 'b', STOPROW => 'zz'}").has("{\"row\":\"z\""));
  CHECK(shell.must("scan 't', COLUMNS => ['g:q']").has("\"1 row\""));
  CHECK(shell.must("count 't'").has("\"rows\":[{\"rows\":2}]"));

  shell.must("delete 't', 'a', 'f:n'");
  CHECK(shell.must("get 't', 'a'").has("\"1 cell\""));
  shell.must("deleteall 't', 'a'");
  CHECK(shell.must("count 't'").has("\"rows\":[{\"rows\":1}]"));
  CHECK(shell.end() == 0);
}

TEST_CASE("what a row holds is printed as escapes, and a repeated change is done once") {
  ShellProcess shell = ShellProcess::talking();
  shell.must("create 't', 'f'");

  shell.must(R"(put 't', 'a\x1b]0;x\x07', 'f:\x9b2J', 'v\x00\xff\n\\')");
  const JsonAnswer row = shell.must("scan 't'");
  CHECK(row.value("row") == R"(a\\x1b]0;x\\x07)");
  CHECK(row.value("column") == R"(f:\\x9b2J)");
  CHECK(row.value("value") == R"(v\\x00\\xff\\n\\\\)");

  const JsonAnswer first = shell.must("incr 't', 'r', 'f:n', 5, NONCE => '1f-2a'");
  const std::string resumed = ", RESUME => '" + first.value("nonce") + "'";
  CHECK(first.value("nonce").starts_with("1f-2a-"));
  CHECK(shell.must("incr 't', 'r', 'f:n', 5" + resumed).value("value") == "5");
  CHECK(shell.must("get 't', 'r'").value("value") == "5");
  const JsonAnswer other = shell.ask("incr 't', 'r', 'f:n', 6" + resumed);
  CHECK(other.failed_with("KEY_REUSED"));
  CHECK(other.is("failed"));
  CHECK(other.has("was given to another statement than incr 't', 'r', 'f:n', 6"));
  CHECK(other.value("again").empty());
  // Without the mark of the statement, the region compares what it was sent.
  const std::string unmarked = resumed.substr(0, resumed.rfind("-s")) + "'";
  const JsonAnswer compared = shell.ask("incr 't', 'r', 'f:n', 6" + unmarked);
  CHECK(compared.failed_with("KEY_REUSED"));
  CHECK(compared.is("failed"));
  CHECK(compared.value("again").empty());
  CHECK(shell.must("incr 't', 'r', 'f:n', 5" + unmarked).value("value") == "5");

  const JsonAnswer created = shell.must("create 'u', 'f', NONCE => '1-1'");
  const JsonAnswer again = shell.must("create 'u', 'f', NONCE => '1-1'");
  CHECK(created.value("procedure") == again.value("procedure"));
  const std::string of_create = ", RESUME => '" + created.value("nonce") + "'";
  CHECK(shell.must("create 'u', 'f', TIMEOUT => 60" + of_create).value("procedure") ==
        created.value("procedure"));
  CHECK(shell.ask("create 'w', 'f'" + of_create).failed_with("KEY_REUSED"));
  CHECK(shell.ask("drop 'u'" + of_create).failed_with("KEY_REUSED"));
  CHECK(shell.must("list").has("\"2 tables\""));
}

TEST_CASE("tables are created, altered, disabled, emptied and dropped by statements") {
  ShellProcess shell = ShellProcess::talking();
  shell.must("create_namespace 'shop', MAX_TABLES => 1");
  shell.must("create 'shop:o', {NAME => 'f'}, NUMREGIONS => 4");
  CHECK(shell.ask("create 'shop:p', 'f'").failed_with("FAILED_PRECONDITION"));
  CHECK(shell.ask("create 'shop:o', 'f'").is("failed"));
  CHECK(shell.ask("create 'x', 'f', SPLITS => ['a'], NUMREGIONS => 2")
            .failed_with("INVALID_ARGUMENT"));

  CHECK(shell.must("alter 'shop:o', 'g', 'h'").is("done"));
  CHECK(shell.ask("alter 'shop:o', 'g'").failed_with("ALREADY_EXISTS"));
  shell.must("alter 'shop:o', {NAME => 'g', METHOD => 'delete'}");
  const JsonAnswer described = shell.must("describe 'shop:o'");
  CHECK(described.has("[{\"family\":\"f\"},{\"family\":\"h\"}]"));
  CHECK(described.has("is ENABLED, with 2 families and 4 regions"));

  CHECK(shell.ask("drop 'shop:o'").failed_with("FAILED_PRECONDITION"));
  shell.must("disable 'shop:o'");
  CHECK(shell.must("list 'shop:*'").has("\"state\":\"DISABLED\""));
  CHECK(shell.must("list 'x*'").has("\"0 tables\""));
  shell.must("truncate_preserve 'shop:o'");
  CHECK(shell.must("regions 'shop:o'").has("\"4 regions\""));
  shell.must("disable 'shop:o'");
  shell.must("truncate 'shop:o'");
  CHECK(shell.must("regions 'shop:o'").has("\"1 region\""));
  shell.must("disable 'shop:o'");
  shell.must("enable 'shop:o'");
  shell.must("disable 'shop:o'");
  shell.must("drop 'shop:o'");
  CHECK(shell.ask("describe 'shop:o'").failed_with("NOT_FOUND"));
  CHECK(shell.ask("get 'shop:o', 'r'").failed_with("NOT_FOUND"));
  shell.must("alter_namespace 'shop', MAX_TABLES => 3");
  CHECK(shell.must("list_namespaces").has("{\"namespace\":\"shop\",\"max_tables\":3}"));
  shell.must("drop_namespace 'shop'");
  CHECK(shell.must("check").has("all is in order"));
}

}  // namespace pv2::testing::shell_rows_test
