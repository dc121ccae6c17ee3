// SPDX-License-Identifier: Apache-2.0
//
// check_no_upgrade: what is refused, with which words, and what only looks like an upgrade.

#include <pv2/scheduler/lock_upgrade.h>

#include "support/catch.h"
#include "test_entry.h"

namespace pv2::testing::lock_upgrade_test {

using namespace pv2::test;

TEST_CASE("asking exclusively for what an ancestor shares is an error that says so") {
  TestEntry root(1, table("t", LockMode::kShared)), middle(2, {}, &root);
  TestEntry child(3, table("t", LockMode::kExclusive), &middle);

  const Status status = check_no_upgrade(child);

  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()),
             ContainsSubstring("procedure 3 asks for table ns:t exclusively") &&
                 ContainsSubstring("ancestor 1 only shares"));
}

TEST_CASE("a request is no upgrade if an ancestor further up holds the key exclusively") {
  TestEntry root(1, table("t", LockMode::kExclusive));
  TestEntry middle(2, table("t", LockMode::kShared), &root);
  TestEntry child(3, table("t", LockMode::kExclusive), &middle);

  CHECK(check_no_upgrade(child).ok());
}

TEST_CASE("a request is no upgrade if the ancestor releases the key while it waits") {
  LockSet locks = table("t", LockMode::kShared);
  locks.scope(GENERATE(LockScope::kStep, LockScope::kVisit));
  TestEntry root(1, locks), child(2, table("t", LockMode::kExclusive), &root);

  CHECK(check_no_upgrade(child).ok());
}

TEST_CASE("an ancestor that releases the key while it waits covers no upgrade below it") {
  LockSet locks = table("t", LockMode::kExclusive);
  locks.scope(GENERATE(LockScope::kStep, LockScope::kVisit));
  TestEntry root(1, locks), middle(2, table("t", LockMode::kShared), &root);
  TestEntry child(3, table("t", LockMode::kExclusive), &middle);

  CHECK(check_no_upgrade(child).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a namespace taken exclusively under a parent's table lock is an upgrade") {
  TestEntry root(1, table("t", LockMode::kExclusive));
  TestEntry child(2, name_space("ns", LockMode::kExclusive), &root);

  CHECK(check_no_upgrade(child).code() == StatusCode::kInvalidArgument);
}

}  // namespace pv2::testing::lock_upgrade_test
