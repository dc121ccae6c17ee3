// SPDX-License-Identifier: Apache-2.0
//
// Those who wait for a result are kept in the order of their tickets, whatever order they come in,
// and each can be taken out by its ticket.

#include "model/wait_list.h"

#include <pv2/base/random.h>
#include <pv2/base/sanitizers.h>

#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.h"

namespace pv2::testing::wait_list_test {
namespace {

// A caller that says its number when it is told something.
Waiter waiter(std::uint64_t ticket, std::vector<std::uint64_t>& told) {
  return {{.tell = [&told, ticket](const Result<ProcedureResult>&) { told.push_back(ticket); }},
          ticket};
}

// Takes all callers out and tells each, in the order of the list.
void tell_all(WaitList& list) {
  while (!list.empty()) list.take_oldest().reply.tell(ProcedureResult());
}

}  // namespace

TEST_CASE("those who wait leave a list in the order of their tickets") {
  std::vector<std::uint64_t> told;
  WaitList list;
  CHECK(list.empty());
  CHECK_FALSE(list.has_one());
  list.add(waiter(5, told));
  CHECK_FALSE(list.empty());
  CHECK(list.has_one());
  for (const std::uint64_t ticket : {3, 9, 1, 7}) list.add(waiter(ticket, told));
  CHECK_FALSE(list.has_one());
  tell_all(list);
  CHECK(told == std::vector<std::uint64_t>{1, 3, 5, 7, 9});
  CHECK(list.empty());
}

TEST_CASE("whoever withdraws is told nothing, and all others are") {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint64_t> told;
    std::map<std::uint64_t, bool> waits;
    WaitList list;
    for (int i = 0; i < 30; ++i) {
      const std::uint64_t ticket = 1 + random.below(20);
      if (random.below(2) == 0 && !waits.contains(ticket)) {
        list.add(waiter(ticket, told));
        waits[ticket] = true;
      } else {
        CHECK(list.withdraw(ticket).has_value() == (waits.erase(ticket) != 0));
      }
      CHECK(list.empty() == waits.empty());
      CHECK(list.has_one() == (waits.size() == 1));
    }
    tell_all(list);
    std::vector<std::uint64_t> expected;
    for (const auto& [ticket, waiting] : waits) expected.push_back(ticket);
    CHECK(told == expected);
  }
}

TEST_CASE("a list of callers is as it was when there is no memory for one more") {
  if (kAddressSanitizer || kThreadSanitizer) return;  // their blocks come from operator new
  const std::uint64_t newcomer = GENERATE(std::uint64_t{3}, std::uint64_t{9});
  const bool has_others = GENERATE(false, true);
  std::vector<std::uint64_t> told;
  std::vector<std::uint64_t> expected{5};
  WaitList list;
  list.add(waiter(5, told));
  if (has_others) {
    list.add(waiter(7, told));
    expected.push_back(7);
  }
  bool refused = false;
  try {
    const FewBlocksForTests none(0);
    list.add(waiter(newcomer, told));
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  CHECK(refused);
  CHECK(list.has_one() != has_others);
  tell_all(list);
  CHECK(told == expected);
}

}  // namespace pv2::testing::wait_list_test
