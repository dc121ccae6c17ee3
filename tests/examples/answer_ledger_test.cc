// SPDX-License-Identifier: Apache-2.0
//
// The checker of the counter service finds each kind of wrong answer, and says where.

#include "answer_ledger.h"

#include <string>

#include "support/catch.h"

namespace pv2::testing::answer_ledger_test {
namespace {

using counter::AnswerLedger;

bool contains(const std::optional<std::string>& text, std::string_view part) {
  return text && text->find(part) != std::string::npos;
}

/// 0 -> 3 -> 8 -> 9, told in another order.
AnswerLedger three_adds() {
  AnswerLedger ledger;
  ledger.added("a", 1, "9");
  ledger.added("a", 3, "3");
  ledger.added("a", 5, "8");
  return ledger;
}

}  // namespace

TEST_CASE("the counter service's checker: answers that lead from 0 to the final value are right") {
  AnswerLedger ledger = three_adds();

  CHECK_FALSE(ledger.check_counter("a", 9));
  CHECK(ledger.told("a").sum == 9);
  CHECK(ledger.first_contradiction().empty());
}

TEST_CASE("the counter service's checker: a step that nobody was told of is found") {
  AnswerLedger ledger = three_adds();
  ledger.added("a", 2, "13");

  CHECK(contains(ledger.check_counter("a", 13), "nobody was told what took a from 9 to 11"));
}

TEST_CASE("the counter service's checker: a value that was told twice is found") {
  AnswerLedger ledger = three_adds();
  ledger.added("a", 4, "7");

  CHECK(contains(ledger.check_counter("a", 9), "two clients were told"));
}

TEST_CASE("the counter service's checker: an effect that is missing in the end is found") {
  AnswerLedger ledger = three_adds();

  CHECK(contains(ledger.check_counter("a", 8), "an effect was lost"));
  CHECK(contains(ledger.check_counter("a", 12), "an operation was done twice"));
}

TEST_CASE("the counter service's checker: a failure that the limit did not ask for is found") {
  AnswerLedger ledger = three_adds();

  ledger.add_failed("a", 2, 10);
  CHECK_FALSE(ledger.check_counter("a", 9));
  ledger.add_failed("a", 1, 10);
  CHECK(contains(ledger.check_counter("a", 9), "an add of 1 to a failed"));
}

TEST_CASE("the counter service's checker: an answer that is no value is found") {
  AnswerLedger ledger;
  ledger.added("a", 5, "4");

  CHECK(ledger.first_contradiction() == "an add of 5 to a was answered '4'");
}

TEST_CASE("the counter service's checker: a piece of text that is elsewhere, or twice, is found") {
  AnswerLedger ledger;
  ledger.appended("diary", "one;", "4");
  ledger.appended("diary", "two;", "8");

  CHECK_FALSE(ledger.check_text("diary", "one;two;"));
  CHECK(contains(ledger.check_text("diary", "two;one;"), "at byte 0"));
  CHECK(contains(ledger.check_text("diary", "one;two;two;"), "an operation was done twice"));
  ledger.appended("diary", "odd;", "8");
  CHECK(ledger.first_contradiction() ==
        "two clients were told that their piece begins at byte 4 of diary");
}

}  // namespace pv2::testing::answer_ledger_test
