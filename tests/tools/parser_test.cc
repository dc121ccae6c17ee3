// SPDX-License-Identifier: Apache-2.0
//
// The language of the shell: what a line means, and that every other line is refused with its
// column and an example.

#include "language/parser.h"

#include <string>

#include "language/escape.h"
#include "support/catch.h"

namespace pv2::testing::parser_test {
namespace {

using shell::parse;
using shell::Statement;
using shell::Value;

Statement statement(std::string_view line) {
  const auto parsed = parse(line);
  INFO(line);
  REQUIRE(parsed.status().to_string() == "OK");
  return *parsed;
}

std::string refusal(std::string_view line) {
  const auto parsed = parse(line);
  INFO(line);
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.status().code() == StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

TEST_CASE("a statement is a command, its arguments and its options") {
  const Statement create =
      statement("create 't', 'f1', {SPLITS => ['a', \"m\"]}, NUMREGIONS => -16, ALL");

  CHECK(create.command == "create");
  REQUIRE(create.arguments.size() == 4);
  CHECK(create.arguments[0].text == "t");
  CHECK(create.arguments[2].kind == Value::Kind::kMap);
  const Value* const splits = create.arguments[2].find("SPLITS");
  REQUIRE(splits != nullptr);
  REQUIRE(splits->items.size() == 2);
  CHECK(splits->items[1].text == "m");
  CHECK(create.arguments[3].kind == Value::Kind::kWord);
  REQUIRE(create.options.size() == 1);
  CHECK(create.options[0].name == "NUMREGIONS");
  CHECK(create.options[0].value.number == -16);
}

TEST_CASE("blank lines and comments are empty statements") {
  CHECK(statement("").empty());
  CHECK(statement(" \t \r").empty());
  CHECK(statement("  # list").empty());
  CHECK(statement("list # 't'").arguments.empty());
  CHECK(statement("get 't', '#1'").arguments[1].text == "#1");
}

TEST_CASE("a text may hold every byte, and both quotes mean the same") {
  CHECK(statement(R"(put 'a\n\t\r\\\'\"\x00\xFf')").arguments[0].text ==
        std::string("a\n\t\r\\'\"\0\xff", 9));
  CHECK(statement(R"(put "it's")").arguments[0].text == "it's");
  CHECK(statement("put '\xc3\xa4'").arguments[0].text == "\xc3\xa4");
}

TEST_CASE("whatever a text holds, its written form is read as the same bytes") {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);

  const std::string line = "put " + shell::in_quotes(bytes);

  CHECK(line == shell::printable(line));
  CHECK(statement(line).arguments[0].text == bytes);
  const Statement again = statement(to_text(statement("a [1, {K => 'x'}], B => [], C, 'd'")));
  CHECK(to_text(again) == "a [1, {K => 'x'}], C, 'd', B => []");
}

TEST_CASE("a line that is no statement is refused with its column and an example") {
  CHECK(refusal("'t'") == "column 1: a statement begins with a command; for example: list");
  CHECK(refusal("get, 't'").starts_with("column 4: no comma between a command"));
  CHECK(refusal("get 't' 'r'").starts_with("column 9: arguments are separated by commas"));
  CHECK(refusal("get 't',").starts_with("column 9: an argument follows after a comma"));
  CHECK(refusal("get 't").starts_with("column 5: the text has no ' at its end"));
  CHECK(refusal(R"(get 'a\q')").starts_with("column 7: the escapes are"));
  CHECK(refusal(R"(get '\x1')").starts_with("column 6: two hexadecimal digits"));
  CHECK(refusal("incr 5a").starts_with("column 6: not a whole number"));
  CHECK(refusal("incr 1.5").starts_with("column 6: not a whole number"));
  CHECK(refusal("incr -").starts_with("column 6: not a whole number"));
  CHECK(refusal("incr 9223372036854775808").starts_with("column 6: the number does not fit"));
  CHECK(refusal("scan ['a'").starts_with("column 10: the list goes on with a comma"));
  CHECK(refusal("scan [").starts_with("column 6: the list has no ]"));
  CHECK(refusal("scan ['a',]").starts_with("column 11: an item follows after a comma"));
  CHECK(refusal("scan {'a' => 1}").starts_with("column 7: the key of a map is a word"));
  CHECK(refusal("scan {A 1}").starts_with("column 9: => follows after a key"));
  CHECK(refusal("scan {A =>").starts_with("column 11: a value follows"));
  CHECK(refusal("scan {A => 1, A => 2}").starts_with("column 15: key A was given before"));
  CHECK(refusal("scan A => 1, A => 2").starts_with("column 14: option A was given before"));
  CHECK(refusal("scan 5 => 1").starts_with("column 6: the name of an option is a word"));
  CHECK(refusal("scan %").starts_with("column 6: '%' begins no value"));
}

TEST_CASE("what a refusal quotes cannot move the cursor") {
  CHECK(refusal("scan \x1b[2J").starts_with("column 6: '\\x1b' begins no value"));
  CHECK(refusal("scan 'a\x1b[2J'").starts_with("column 8: a control character; write \\x1b"));
  CHECK(refusal(std::string("scan '\0'", 8)).starts_with("column 7: a control character"));
}

TEST_CASE("a hostile line is refused in bounded time and depth") {
  CHECK(refusal("a " + std::string(1'000'000, '[')).find("16 deep at most") != std::string::npos);
  std::string maps = "a ";
  for (int i = 0; i < 100'000; ++i) maps += "{K => ";
  CHECK(refusal(maps).find("16 deep at most") != std::string::npos);
  std::string keys = "a {";
  for (int i = 0; i < 100'000; ++i) keys += "K" + std::to_string(i) + " => 1, ";
  CHECK(refusal(keys).find("64 keys at most") != std::string::npos);
  CHECK(refusal("a '" + std::string(shell::kLineBytesMax, 'x') + "'").find("too long") !=
        std::string::npos);
  CHECK(statement("a '" + std::string(1 << 20, 'x') + "'").arguments[0].text.size() == 1 << 20);
}

}  // namespace
}  // namespace pv2::testing::parser_test
