// SPDX-License-Identifier: Apache-2.0
//
// When a turn may begin: RollbackPlan against a slow and obviously correct model, which compares
// every pair of turns, over random trees, orders of steps, and orders in which the undos end.

#include "model/rollback_plan.h"

#include <pv2/base/random.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "model/execution.h"
#include "model/undo_order.h"
#include "support/catch.h"

namespace pv2::testing::rollback_plan_test {
namespace {

using Members = std::vector<std::unique_ptr<Execution>>;

Execution& add(Members& members, Execution* parent, std::uint64_t spawned_at, bool beside) {
  Execution& member = *members.emplace_back(std::make_unique<Execution>());
  member.id = ProcedureId{members.size()};
  member.edit_place().spawned_at = spawned_at;
  if (beside) member.undo_order = UndoOrder::kConcurrent;
  member.belong_to(parent);
  return member;
}

std::vector<const Execution*> path_to(const Execution& member) {
  std::vector<const Execution*> path;
  for (const Execution* at = &member; at != nullptr; at = at->parent_execution()) {
    path.insert(path.begin(), at);
  }
  return path;
}

// Whether no step of the one depends on a step of the other: where their paths from the root part,
// both go on to children of one step that are undone concurrently.
bool are_independent(const Execution& a, const Execution& b) {
  const auto to_a = path_to(a);
  const auto to_b = path_to(b);
  std::size_t depth = 0;
  while (depth < to_a.size() && depth < to_b.size() && to_a[depth] == to_b[depth]) ++depth;
  if (depth == to_a.size() || depth == to_b.size()) return false;
  const Execution& from_a = *to_a[depth];
  const Execution& from_b = *to_b[depth];
  const bool both =
      from_a.undo_order == UndoOrder::kConcurrent && from_b.undo_order == UndoOrder::kConcurrent;
  return both && from_a.place->spawned_at == from_b.place->spawned_at;
}

bool is_below(const Execution& member, const Execution& ancestor) {
  const auto path = path_to(member);
  return &member != &ancestor && std::find(path.begin(), path.end(), &ancestor) != path.end();
}

// Each of these members, parents before their children. A taker whose newest turn is older than one
// below it takes its locks right before the newest one below it. A keeper whose oldest turn is
// newer than one below it gives its locks back right after the oldest one below it.
std::vector<UndoTurn> with_added_turns(std::vector<UndoTurn> turns, const UndoLocks& locks) {
  const auto is_of = [](const Execution* member) {
    return [member](const UndoTurn& turn) {
      return turn.kind == UndoTurn::Kind::kStep &&
             (turn.execution == member || is_below(*turn.execution, *member));
    };
  };
  for (Execution* const taker : locks.takers) {
    const auto newest = std::find_if(turns.rbegin(), turns.rend(), is_of(taker));
    if (newest == turns.rend() || newest->execution == taker) continue;
    turns.insert(newest.base(), {taker, {0, newest->entry.sequence}, UndoTurn::Kind::kFirst});
  }
  for (Execution* const keeper : locks.keepers) {
    const auto oldest = std::find_if(turns.begin(), turns.end(), is_of(keeper));
    if (oldest == turns.end() || oldest->execution == keeper) continue;
    turns.insert(oldest, {keeper, {0, oldest->entry.sequence}, UndoTurn::Kind::kLast});
  }
  return turns;
}

struct ModelTurn {
  UndoTurn turn;
  std::set<std::size_t> waits_for;  // newer turns, directly or indirectly
  bool over = false;
};

std::vector<ModelTurn> model_of(const std::vector<UndoTurn>& turns) {
  std::vector<ModelTurn> model;
  for (const UndoTurn& turn : turns) model.push_back({turn, {}});
  for (std::size_t i = turns.size(); i-- > 0;) {
    for (std::size_t newer = i + 1; newer < turns.size(); ++newer) {
      if (are_independent(*turns[i].execution, *turns[newer].execution)) continue;
      model[i].waits_for.insert(newer);
      model[i].waits_for.insert(model[newer].waits_for.begin(), model[newer].waits_for.end());
    }
  }
  return model;
}

// By member, kind of turn and step.
using Steps = std::set<std::tuple<std::uint64_t, UndoTurn::Kind, std::uint32_t>>;

std::tuple<std::uint64_t, UndoTurn::Kind, std::uint32_t> name_of(const UndoTurn& turn) {
  return {turn.execution->id.value, turn.kind, turn.entry.step};
}

Steps may_begin(const std::vector<ModelTurn>& model) {
  Steps steps;
  for (const ModelTurn& turn : model) {
    const bool free = std::all_of(turn.waits_for.begin(), turn.waits_for.end(),
                                  [&](std::size_t newer) { return model[newer].over; });
    if (free && !turn.over) steps.insert(name_of(turn.turn));
  }
  return steps;
}

}  // namespace

TEST_CASE(
    "the plan of a rollback begins a turn exactly when all turns that it waits for are over") {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    Members members;
    add(members, nullptr, 0, false);
    const std::size_t count = 1 + random.below(9);
    while (members.size() < count) {
      Execution& parent = *members[random.below(members.size())];
      add(members, &parent, 1 + random.below(2), random.below(3) != 0);
    }
    Execution& head = *members[random.below(2) == 0 ? 0 : random.below(members.size())];
    std::vector<UndoTurn> turns;
    for (std::uint32_t step = 1; step <= 14; ++step) {
      Execution& member = *members[random.below(members.size())];
      const auto path = path_to(member);
      if (std::find(path.begin(), path.end(), &head) == path.end()) continue;
      turns.push_back({&member, {step, CommitSequence{step}}});
    }
    UndoLocks locks;
    if (random.below(4) == 0) locks.takers.push_back(&head);
    for (const auto& member : members) {
      if (!is_below(*member, head) || random.below(2) == 0) continue;
      locks.keepers.push_back(member.get());
      if (random.below(2) == 0) locks.takers.push_back(member.get());
    }
    std::vector<ModelTurn> model = model_of(with_added_turns(turns, locks));
    if (random.below(2) == 0) std::reverse(turns.begin(), turns.end());
    RollbackPlan plan(head, in_undo_order(head, turns), locks);

    INFO("seed " << seed);
    std::multiset<const Execution*> with_added_turn;
    while (const Execution* const member = plan.take_with_added_turn()) {
      with_added_turn.insert(member);
    }
    std::multiset<const Execution*> added;
    for (const ModelTurn& turn : model) {
      if (turn.turn.kind != UndoTurn::Kind::kStep) added.insert(turn.turn.execution);
    }
    REQUIRE(with_added_turn == added);
    std::vector<UndoTurn> begun;
    for (std::size_t left = model.size();; --left) {
      while (const UndoTurn* const turn = plan.begin_next()) begun.push_back(*turn);
      Steps steps;
      for (const UndoTurn& turn : begun) steps.insert(name_of(turn));
      REQUIRE(steps == may_begin(model));
      REQUIRE(plan.begun().size() == begun.size());
      REQUIRE(plan.left() == left);
      if (left == 0) break;
      const std::size_t which = random.below(begun.size());
      const UndoTurn over = begun[which];
      const UndoTurn* const newest = plan.newest_of(*over.execution);
      REQUIRE(newest != nullptr);
      REQUIRE(name_of(*newest) == name_of(over));
      begun.erase(begun.begin() + static_cast<std::ptrdiff_t>(which));
      if (random.below(4) == 0) {  // it is stopped, and begun again
        plan.put_back(*over.execution);
        ++left;
        continue;
      }
      plan.end(*over.execution);
      const auto turn_of = [&](const ModelTurn& turn) {
        return name_of(turn.turn) == name_of(over);
      };
      std::find_if(model.begin(), model.end(), turn_of)->over = true;
    }
  }
}

TEST_CASE("turns that may begin together begin from the newest to the oldest") {
  Members members;
  Execution& head = add(members, nullptr, 0, false);
  std::vector<UndoTurn> turns{{&head, {1, CommitSequence{1}}}};
  for (std::uint32_t step = 2; step <= 4; ++step) {
    turns.push_back({&add(members, &head, 1, true), {step, CommitSequence{step}}});
  }
  RollbackPlan plan(head, turns);

  for (const std::uint32_t step : {4U, 3U, 2U}) CHECK(plan.begin_next()->entry.step == step);
  CHECK(plan.begin_next() == nullptr);
  for (std::size_t child = 1; child <= 3; ++child) {
    CHECK(plan.begin_next() == nullptr);
    plan.end(*members[child]);
  }
  CHECK(plan.begin_next()->entry.step == 1);
}

TEST_CASE("each call of a plan takes a bounded number of looks, and all of them n log n") {
  const bool nested = GENERATE(false, true);
  const auto played = [&](std::size_t n) {
    Members members;
    Execution& head = add(members, nullptr, 0, false);
    std::vector<UndoTurn> turns{{&head, {1, CommitSequence{1}}}};
    Execution* level = &head;
    for (std::size_t i = 0; i < n; ++i) {
      add(members, level, 1, true);
      if (nested) level = &add(members, level, 1, true);
    }
    for (const auto& member : members) {
      if (member->id.value % 2 != 0) continue;  // in a nested tree it gets two turns for its locks
      turns.push_back({member.get(), {2, CommitSequence{1 + member->id.value}}});
    }
    turns.push_back({&head, {3, CommitSequence{UINT32_MAX}}});
    UndoLocks locks;
    for (const auto& member : members) {
      if (member.get() != &head) locks.keepers.push_back(member.get());
    }
    locks.takers = locks.keepers;
    std::reverse(turns.begin(), turns.end());
    Looks looks;
    Looks* outer = looks.begin();
    RollbackPlan plan(head, in_undo_order(head, turns), locks);
    looks.end(outer);
    const std::uint64_t made = looks.total();
    looks.forget();
    while (plan.left() != 0) {
      outer = looks.begin();
      const UndoTurn* const turn = plan.begin_next();
      static_cast<void>(plan.take_new_waits(100));
      looks.end(outer);
      REQUIRE((turn != nullptr || plan.may_begin()));
      if (turn == nullptr) continue;
      outer = looks.begin();
      plan.end(*turn->execution);
      looks.end(outer);
    }
    CHECK(looks.most() <= 200);
    return std::pair(made, looks.total());
  };
  const auto [made, total] = played(1000);
  const auto [made_of_four, total_of_four] = played(4000);
  CHECK(made_of_four <= 5 * made);
  CHECK(total_of_four <= 5 * total);
}

TEST_CASE("a turn that was skipped without its locks becomes a turn that takes them") {
  const bool has_begun = GENERATE(false, true);
  Members members;
  Execution& head = add(members, nullptr, 0, false);
  Execution& parent = add(members, &head, 1, false);
  Execution& child = add(members, &parent, 1, false);
  Execution& other = add(members, &head, 1, false);
  RollbackPlan plan(head, {{&parent, {1, CommitSequence{1}}},
                           {&child, {1, CommitSequence{2}}},
                           {&other, {1, CommitSequence{3}}},
                           {&parent, {2, CommitSequence{4}}},
                           {&other, {2, CommitSequence{5}}}});
  CHECK(plan.begin_next()->execution == &other);
  if (has_begun) {
    plan.end(other);
    CHECK(plan.begin_next()->execution == &parent);
  }

  CHECK(plan.take_locks_instead(parent));
  CHECK_FALSE(plan.has_begun(parent));
  CHECK(plan.newest_of(parent)->kind == UndoTurn::Kind::kFirst);
  if (!has_begun) plan.end(other);
  CHECK(plan.left() == 4);
  CHECK(plan.begin_next()->execution == &other);  // it comes before those below the parent
  plan.end(other);
  CHECK(plan.begin_next()->kind == UndoTurn::Kind::kFirst);
  plan.end(parent);
  CHECK(plan.begin_next()->execution == &child);
  plan.end(child);
  CHECK(plan.begin_next()->entry.step == 1);
}

TEST_CASE("a turn whose member takes its locks in its next turn is only over when it is skipped") {
  Members members;
  Execution& head = add(members, nullptr, 0, false);
  Execution& parent = add(members, &head, 1, false);
  Execution& child = add(members, &parent, 1, false);
  RollbackPlan plan(head, {{&child, {1, CommitSequence{1}}},
                           {&parent, {2, CommitSequence{2}}},
                           {&parent, {3, CommitSequence{3}}}});
  CHECK(plan.begin_next()->entry.step == 3);

  CHECK_FALSE(plan.take_locks_instead(parent));
  plan.end(parent);
  CHECK(plan.begin_next()->entry.step == 2);
}

TEST_CASE("an operator may pass over a turn that has not begun") {
  Members members;
  Execution& head = add(members, nullptr, 0, false);
  Execution& child = add(members, &head, 1, true);
  RollbackPlan plan(head, {{&head, {1, CommitSequence{1}}},
                           {&child, {1, CommitSequence{2}}},
                           {&child, {2, CommitSequence{3}}}});

  plan.end(child);
  CHECK(plan.newest_of(child)->entry.step == 1);
  plan.end(child);
  CHECK(plan.newest_of(child) == nullptr);
  CHECK(plan.begin_next()->execution == &head);
  CHECK(plan.left() == 1);
}

}  // namespace pv2::testing::rollback_plan_test
