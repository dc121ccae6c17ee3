// SPDX-License-Identifier: Apache-2.0
//
// Which server splits a log for which procedure, and what becomes of the places of those that have
// ended without a word.

#include "master/splitter_slots.h"

#include <set>
#include <vector>

#include "cluster/master/parts_world.h"

namespace pv2::testing::splitter_slots_test {
namespace {

using parts_world::Wait;

const ServerName kServer{"rs1", 1};

struct World {
  Wait<Result<ServerName>> acquire(std::uint64_t procedure) {
    Wait<Result<ServerName>> wait;
    slots.acquire(ProcedureId{procedure}, {}, wait.completion());
    return wait;
  }

  std::set<ProcedureId> ended;
  cluster::SplitterSlots slots{[] { return std::vector{kServer}; },
                               [this](ProcedureId id) { return ended.contains(id); }};
};

}  // namespace

TEST_CASE("a server splits two logs at a time, and the next one when a place is given back") {
  World world;
  const auto first = world.acquire(1);
  const auto second = world.acquire(2);
  const auto third = world.acquire(3);
  CHECK(first.answer().value() == kServer);
  CHECK(second.answer().value() == kServer);
  CHECK(!third.is_answered());

  world.slots.release(ProcedureId{1});

  CHECK(third.answer().value() == kServer);
}

TEST_CASE("the place of a procedure that an operator has ended is free") {
  const bool waits_before = GENERATE(false, true);
  World world;
  (void)world.acquire(1);
  (void)world.acquire(2);
  if (!waits_before) world.ended = {ProcedureId{1}};
  const auto third = world.acquire(3);
  CHECK(third.is_answered() == !waits_before);
  if (waits_before) {
    world.ended = {ProcedureId{1}};
    world.slots.look();
  }

  CHECK(third.answer().value() == kServer);
}

}  // namespace pv2::testing::splitter_slots_test
