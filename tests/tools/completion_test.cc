// SPDX-License-Identifier: Apache-2.0
//
// Completion and the file of the history, without a terminal and without a cluster.

#include "terminal/completion.h"

#include <fstream>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/temporary_directory.h"
#include "terminal/history_file.h"

namespace pv2::testing::completion_test {
namespace {

using namespace pv2::shell;

class Names final : public Vocabulary {
 public:
  std::vector<std::string> names(Takes takes) override {
    if (takes == Takes::kTable) return {"orders", "others", "it's"};
    if (takes == Takes::kProcedure) return {"12", "120"};
    return {};
  }
};

std::vector<std::string> candidates(std::string_view line) {
  Names names;
  const Completion completion = complete(line, names);
  CHECK(completion.begin <= line.size());
  return completion.candidates;
}

using Words = std::vector<std::string>;

TEST_CASE("a word is completed by what its place takes") {
  CHECK(candidates("desc") == Words{"describe "});
  CHECK(candidates("  lis").size() == 5);  // list and its longer names
  CHECK(candidates("describe ") == Words{"'it\\'s'", "'orders'", "'others'", "TIMEOUT => "});
  CHECK(candidates("describe 'o") == Words{"'orders'", "'others'"});
  CHECK(candidates("describe \"or") == Words{"\"orders\""});
  CHECK(candidates("put 'orders', 'o").empty());  // a row may be anything
  CHECK(candidates("scan 'orders', LI") == Words{"LIMIT => "});
  CHECK(candidates("scan 'orders', {STARTROW => 'a', STO") == Words{"STOPROW => "});
  CHECK(candidates("wait 12") == Words{"12", "120"});
  CHECK(candidates("nonsense 'o").empty());
  CHECK(candidates("").size() == commands().size());
}

TEST_CASE("what all candidates begin with is the longest common beginning") {
  CHECK(Completion{.candidates = {"'orders'", "'others'"}}.common() == "'o");
  CHECK(Completion{.candidates = {"list ", "list_locks"}}.common() == "list");
  CHECK(Completion{}.common().empty());
}

TEST_CASE("a hostile line is completed by nothing, and breaks nothing") {
  CHECK(candidates("describe 'a\\").empty());
  CHECK(candidates(std::string("\0\x1b[2J", 5)).empty());
  CHECK(candidates("scan }}}]]] '" + std::string(100'000, '\\')).empty());
}

TEST_CASE("a history that cannot be read to its end is not taken for a shorter one") {
  const TemporaryDirectory directory;
  const auto lines =
      HistoryFile(directory.path("")).load();  // a directory opens, and cannot be read
  CHECK(lines.status().code() == StatusCode::kIoError);
  CHECK_THAT(lines.status().to_string(), ContainsSubstring("cannot be read"));
}

TEST_CASE("a history that has become long is shortened to its newest lines") {
  const TemporaryDirectory directory;
  const std::string path = directory.path("state/history");
  const HistoryFile history(path);
  CHECK(history.load()->empty());
  CHECK(history.add("first").ok());
  CHECK(*history.load() == Words{"first"});
  {
    std::ofstream file(path, std::ios::app);
    for (int i = 0; i < 3000; ++i) file << "line " << i << "\n";
  }

  const auto lines = history.load();

  REQUIRE(lines.ok());
  CHECK(lines->size() == HistoryFile::kLinesMax);
  CHECK(lines->front() == "line 2000");
  CHECK(lines->back() == "line 2999");
  CHECK(*history.load() == *lines);
  CHECK_FALSE(HistoryFile("/dev/null/x").add("lost").ok());
}

}  // namespace
}  // namespace pv2::testing::completion_test
