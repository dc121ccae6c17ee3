// SPDX-License-Identifier: Apache-2.0
//
// The session on docs/shell.md is what the shell prints today: the statements after its prompts are
// typed at a terminal, and the screen is compared with the page, after what differs from run to run
// has been replaced by a word. tools/renew_shell_page.sh writes the page anew.

#include <cstdlib>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_directory.h"
#include "tools/terminal.h"

namespace pv2::testing::shell_page_test {
namespace {

constexpr const char* kPage = PV2_SOURCE_DIR "/docs/shell.md";
constexpr std::string_view kBegin = "<!-- a session, as it is printed -->\n```text\n";
constexpr std::string_view kEnd = "```\n";

/// The page, and where its session is in it.
struct Page {
  std::string text = read_file(kPage);
  std::size_t begin = 0;
  std::size_t length = 0;

  Page() {
    begin = text.find(kBegin);
    REQUIRE(begin != std::string::npos);
    begin += kBegin.size();
    length = text.find(kEnd, begin) - begin;
  }
  [[nodiscard]] std::string session() const { return text.substr(begin, length); }
  [[nodiscard]] std::vector<std::string> statements() const {
    std::vector<std::string> found;
    const std::string all = session();
    const std::regex prompt("pv2> ([^\n]*)\n");
    for (std::sregex_iterator each(all.begin(), all.end(), prompt), end; each != end; ++each) {
      found.push_back((*each)[1]);
    }
    return found;
  }
};

/// Replaces what differs from run to run. The page has the same list.
std::string without_volatile_parts(std::string text, const std::string& directory) {
  const std::vector<std::pair<std::regex, std::string>> replacements{
      {std::regex(R"(,\d{13,})"), ",{code}"},
      {std::regex(R"(127\.0\.0\.1:\d+)"), "127.0.0.1:{port}"},
      {std::regex(R"(\b[0-9a-f]{16}\b)"), "{id of a region}"},
      {std::regex(R"(\b(\d+ ms|\d+\.\d+ s)\b)"), "{time}"},
  };
  for (std::size_t at = text.find(directory); at != std::string::npos; at = text.find(directory)) {
    text.replace(at, directory.size(), "{directory}");
  }
  for (const auto& [what, word] : replacements) text = std::regex_replace(text, what, word);
  // Columns are as wide as what was replaced.
  return std::regex_replace(text, std::regex(R"((\{\w+\}) {2,})"), "$1  ");
}

std::string play(const std::vector<std::string>& statements) {
  const TemporaryDirectory directory;
  const std::string root = directory.path("cluster");
  Terminal shell({"--root", root, "--no-history"}, directory.path("state"));
  std::size_t prompts = 1;
  REQUIRE(shell.prompts(prompts));
  for (const std::string& statement : statements) {
    INFO(statement);
    shell.type(statement + '\n');
    if (statement == "exit") break;
    REQUIRE(shell.prompts(++prompts));
  }
  CHECK(shell.end() == 0);
  CHECK(shell.screen().foreign().empty());
  std::string text = shell.screen().text();
  while (text.ends_with("\n\n")) text.pop_back();
  return without_volatile_parts(text, root);
}

}  // namespace

TEST_CASE("the session on the page of the shell is what the shell prints") {
  if (!Terminal::is_possible()) return;
  Page page;
  const std::vector<std::string> statements = page.statements();
  REQUIRE(statements.size() > 10);
  REQUIRE(statements.back() == "exit");

  const std::string printed = play(statements);

  if (std::getenv("PV2_RENEW_SHELL_PAGE") != nullptr) {
    page.text.replace(page.begin, page.length, printed);
    std::ofstream(kPage) << page.text;
    return;
  }
  std::istringstream on_page(page.session());
  std::istringstream now(printed);
  std::string expected;
  std::string line;
  for (int number = 1; std::getline(on_page, expected); ++number) {
    INFO("line " << number << "; tools/renew_shell_page.sh writes the session anew");
    std::getline(now, line);
    REQUIRE(line == expected);
  }
  CHECK_FALSE(std::getline(now, line));
}

}  // namespace pv2::testing::shell_page_test
