// SPDX-License-Identifier: Apache-2.0
//
// The table of commands, and the check of statements against it. No cluster is needed.

#include <algorithm>
#include <set>
#include <string>

#include "commands/call.h"
#include "language/parser.h"
#include "support/catch.h"

namespace pv2::testing::bind_test {
namespace {

using namespace pv2::shell;

Result<Call> bound(std::string_view line) {
  const auto statement = parse(line);
  INFO(line);
  REQUIRE(statement.status().to_string() == "OK");
  return bind(*statement);
}

std::string refusal(std::string_view line) {
  const auto call = bound(line);
  INFO(line);
  REQUIRE_FALSE(call.ok());
  return std::string(call.status().message());
}

TEST_CASE("every command has a name of its own, a summary, and an example that it takes") {
  std::set<std::string_view> names;
  for (const Command& command : commands()) {
    CAPTURE(command.name);
    CHECK(names.insert(command.name).second);
    CHECK(command.summary.ends_with('.'));
    CHECK(command.run != nullptr);
    const auto call = bound(command.example);
    CHECK(call.status().to_string() == "OK");
    if (call.ok()) CHECK(call->command == &command);
    for (std::size_t i = 0; i + 1 < command.arguments.size(); ++i) {
      CHECK(command.arguments[i].count == Argument::Count::kOne);
    }
    std::set<std::string_view> options;
    for (const OptionSpec& option : options_of(command)) {
      CHECK(options.insert(option.name).second);
    }
  }
}

TEST_CASE("an option may stand alone or in a map, and a flag may be a bare word") {
  const auto alone = bound("scan 't', LIMIT => 5, STARTROW => 'a'");
  const auto in_map = bound("scan 't', {LIMIT => 5, STARTROW => 'a'}");
  REQUIRE(alone.ok());
  REQUIRE(in_map.ok());
  CHECK(alone->options == in_map->options);
  CHECK(in_map->option_number("LIMIT", 0) == 5);
  CHECK(bound("list_procedures ALL")->flag("ALL"));
  CHECK(bound("list_procedures ALL => true")->flag("ALL"));
  CHECK_FALSE(bound("list_procedures ALL => false")->flag("ALL"));
  CHECK(bound("scan 't', COLUMNS => 'f'")->option_texts("COLUMNS").size() == 1);
}

TEST_CASE("a wrong argument is refused with its column, what is wrong, and an example") {
  CHECK(refusal("get 't'") ==
        "column 4: row is missing: get 'table', 'row'; for example: get 't', 'row1'");
  CHECK(refusal("get 't', 'r', 'x', 'y'").starts_with("column 15: more than get takes"));
  CHECK(refusal("get t, 'r'").starts_with("column 5: t is not in quotes"));
  CHECK(refusal("get 5, 'r'").starts_with("column 5: table is a text in quotes, and a number"));
  CHECK(refusal("get 'a b', 'r'").starts_with("column 5: "));
  CHECK(refusal("put 't', 'r', 'f', 'v'").starts_with("column 15: a column is 'family:qualifier'"));
  CHECK(refusal("explain '5'").starts_with("column 9: id is a number, and a text"));
  CHECK(refusal("explain 0").starts_with("column 9: the numbers of procedures begin with 1"));
  CHECK(refusal("scan 't', LIMT => 5").starts_with("column 11: scan has no option LIMT"));
  CHECK(refusal("scan 't', LIMIT => 'x'").starts_with("column 20: option LIMIT is a number"));
  CHECK(refusal("scan 't', LIMIT => -1").starts_with("column 20: the number must not be negative"));
  CHECK(refusal("skip_step 7, NEXT_STEP => 4294967296")
            .find("option NEXT_STEP is at most 4294967295") != std::string::npos);
  CHECK(bound("skip_step 7, NEXT_STEP => 4294967295").ok());
  CHECK(refusal("scan 't', COLUMNS => [1]").starts_with("column 22: option COLUMNS is a list"));
  CHECK(refusal("scan 't', LIMIT => 1, {LIMIT => 1}").find("given before") != std::string::npos);
  CHECK(refusal("list_procedures STATE => 'X'").find("is one of RUNNABLE") != std::string::npos);
  CHECK(refusal("list_procedures ALL => 1").starts_with("column 24: option ALL is true or false"));
  CHECK(refusal("create 't', {NAME => 'f', METHOD => 'delete'}").find("a family is") !=
        std::string::npos);
}

TEST_CASE("an unknown command is told the nearest one, if there is one") {
  CHECK(refusal("scna 't'") == "column 1: there is no command scna; did you mean scan?");
  CHECK(refusal("disabel 't'").ends_with("did you mean disable?"));
  CHECK(refusal("xyzzy").ends_with("help lists them all"));
  CHECK(refusal(std::string(100'000, 'a')).ends_with("help lists them all"));
}

TEST_CASE("a change takes a nonce for its first time, and another form for later times") {
  const auto first = bound("put 't', 'r', 'f:q', 'v', NONCE => '1f-2a'");
  REQUIRE(first.ok());
  CHECK((first->identity.nonce == Nonce{0x1f, 0x2a}));
  CHECK_FALSE(first->identity.resumed);

  const WallTime end{Duration(0x1234)};
  const std::string again = first->resume(first->identity.nonce, end);
  CHECK(again == "put 't', 'r', 'f:q', 'v', RESUME => '1f-2a-1234-" + first->mark() + "'");
  const auto later = bound(again);
  REQUIRE(later.ok());
  CHECK((later->identity.nonce == Nonce{0x1f, 0x2a}));
  CHECK(later->identity.expires_at == end);
  CHECK(later->identity.resumed);
  CHECK(later->resume(later->identity.nonce, end) == again);

  CHECK(refusal("put 't', 'r', 'f:q', 'v', NONCE => '1f'").find("two hexadecimal") !=
        std::string::npos);
  CHECK(refusal("put 't', 'r', 'f:q', 'v', NONCE => '1-0'").find("two hexadecimal") !=
        std::string::npos);
  CHECK(refusal("disable 't', NONCE => '1-2-3'").find("two hexadecimal") != std::string::npos);
  CHECK(refusal("put 't', 'r', 'f:q', 'v', RESUME => '1-2'").find("first time has it") !=
        std::string::npos);
  CHECK(refusal("disable 't', RESUME => '1-2-3'").find("first time has it") != std::string::npos);
  CHECK(bound("put 't', 'r', 'f:q', 'v', NONCE => '1-2-3'")->identity.expires_at ==
        WallTime(Duration(3)));
  CHECK(refusal("disable 't', NONCE => '1-2', RESUME => '1-2'").find("every later one") !=
        std::string::npos);
  CHECK(refusal("unlock 7, NONCE => '1-2'").find("write it as it was") != std::string::npos);
  CHECK(refusal("abort 7, RESUME => '1-2'").find("abort takes no RESUME") != std::string::npos);
  CHECK(refusal("get 't', 'r', NONCE => '1-2'").find("has no option NONCE") != std::string::npos);
}

TEST_CASE("a nonce that was given to a statement fits no other one") {
  const auto sent = bound("create 't', 'f', {NUMREGIONS => 2, NONCE => '1-2'}, TIMEOUT => 1");
  REQUIRE(sent.ok());
  const std::string again = sent->resume({1, 2}, std::nullopt);
  const std::string resume = again.substr(again.find(", RESUME"));

  CHECK(again == "create 't', 'f', NUMREGIONS => 2, TIMEOUT => 1" + resume);
  for (const char* same :
       {"create 't', 'f', NUMREGIONS => 2", "create 't', \"f\", {NUMREGIONS => 2}",
        "create 't', 'f', {TIMEOUT => 5, NUMREGIONS => 2}, ASYNC"}) {
    INFO(same);
    const auto later = bound(same + resume);
    REQUIRE(later.status().to_string() == "OK");
    CHECK(later->mark() == sent->mark());
    CHECK((later->identity.nonce == Nonce{1, 2}));
  }
  for (const char* other : {"create 't', 'f'", "create 'u', 'f', NUMREGIONS => 2",
                            "create 't', 'f', 'g', NUMREGIONS => 2", "drop 't'"}) {
    INFO(other);
    const Status refused = bound(other + resume).status();
    CHECK(refused.code() == StatusCode::kKeyReused);
    CHECK(refused.message().find("was given to another statement than " + std::string(other)) !=
          std::string::npos);
  }
  // A split of a whole table asks again for one region.
  auto one = bound("split 't', TIMEOUT => 9");
  REQUIRE(one.ok());
  one->arguments = {{.text = "0123456789abcdef"}, {.text = "m"}};
  const std::string of_one = one->resume({1, 2}, std::nullopt);
  CHECK(of_one.starts_with("split '0123456789abcdef', 'm', TIMEOUT => 9, RESUME => '1-2-s"));
  CHECK(bound(of_one).ok());
  CHECK(bound("create 't', 'f', RESUME => '1-2'").ok());
  CHECK(refusal("create 't', 'f', RESUME => '1-2-s12'").find("first time has it") !=
        std::string::npos);
  // Answers of an earlier version are still good.
  CHECK(bound("drop 't'")->mark() == "sb8cb5ba69ac9a643");
}

}  // namespace
}  // namespace pv2::testing::bind_test
