// SPDX-License-Identifier: Apache-2.0
//
// crash_everywhere as its users see it: it accepts a procedure that is written as it should be, and
// says of each defective one what is wrong and at which crash.

#include "pv2/testing/crash_everywhere.h"

#include "support/catch.h"
#include "testing/shop.h"

namespace pv2::testing::crash_everywhere_test {
namespace {

template <Defect kDefect, bool kStreetOpen>
std::string failure() {
  return crash_everywhere<OrderWorld<kDefect, kStreetOpen>>().failure;
}

}  // namespace

TEST_CASE("crash_everywhere accepts a procedure that copes with every crash, forward and back") {
  // [region crash-everywhere]
  const CrashReport shipped = crash_everywhere<OrderWorld<Defect::kNone, true>>({.twice = true});
  CHECK(shipped.failure == "");
  // [/region]
  CHECK(shipped.commits == 1 + 1 + 3);  // the ids, the submission, three steps
  CHECK(shipped.plays > 2 * shipped.commits * shipped.commits);

  const CrashReport undone = crash_everywhere<OrderWorld<Defect::kNone, false>>({.twice = true});
  CHECK(undone.failure == "");
  CHECK(undone.commits == 1 + 1 + 3 + 3);  // and three undos
}

TEST_CASE("crash_everywhere finds an effect that happens twice, and names the step") {
  const std::string words = failure<Defect::kChargesTwice, true>();
  CHECK_THAT(words, ContainsSubstring("the machine crashed before commit 4 (step CHARGE of "
                                      "shop.PlaceOrder, procedure 1)"));
  CHECK_THAT(words, ContainsSubstring("an order is paid if it is shipped"));
}

TEST_CASE("crash_everywhere finds a member that fields() does not name") {
  const std::string words = failure<Defect::kForgetsParcel, true>();
  CHECK_THAT(words, ContainsSubstring("the machine crashed after commit 4 (step CHARGE of "
                                      "shop.PlaceOrder, procedure 1)"));
  CHECK_THAT(words, ContainsSubstring("the result is OK ''; without a crash it is OK 'parcel of "
                                      "o-42'"));
}

TEST_CASE("crash_everywhere finds an effect that is not undone, even without a crash") {
  const std::string words = failure<Defect::kKeepsTheMoney, false>();
  CHECK_THAT(words, ContainsSubstring("nothing crashed"));
  CHECK_THAT(words, ContainsSubstring("an order is paid if it is shipped"));
}

TEST_CASE("crash_everywhere finds an undo that cannot be repeated") {
  const std::string words = failure<Defect::kRefundsTwice, false>();
  CHECK_THAT(words,
             ContainsSubstring("the machine crashed before commit 7 (the undo of step CHARGE of "
                               "shop.PlaceOrder, procedure 1)"));
}

TEST_CASE("crash_everywhere finds a procedure that does not end after a crash") {
  const std::string words = failure<Defect::kNeverShips, true>();
  CHECK_THAT(words, ContainsSubstring("it does not end; this is left:"));
  CHECK_THAT(words, ContainsSubstring("shop.PlaceOrder of '' RUNNABLE step 3 SHIP"));
}

TEST_CASE("crash_everywhere runs every step twice in one play") {
  const std::string words = failure<Defect::kOneCrashOnly, true>();
  CHECK_THAT(words, ContainsSubstring("every step ran twice"));
}

}  // namespace pv2::testing::crash_everywhere_test
