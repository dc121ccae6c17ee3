// SPDX-License-Identifier: Apache-2.0
//
// In which order turns are undone: by age, and around locks so that no member waits for one that
// comes later, and each is undone under the locks of those above it. Random trees take steps under
// their locks, a domain within them is half undone, and the whole tree fails; then the order is
// played with the same locks.

#include "model/undo_order.h"

#include <pv2/base/random.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/execution.h"
#include "support/catch.h"

namespace pv2::testing::undo_order_test {
namespace {

using Members = std::vector<std::unique_ptr<Execution>>;
using Turns = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // of a member, and its age

Execution& add(Members& members, Execution* parent, const std::vector<std::string>& keys = {},
               LockMode mode = LockMode::kExclusive) {
  Execution& member = *members.emplace_back(std::make_unique<Execution>());
  member.id = ProcedureId{members.size()};
  for (const std::string& key : keys) {
    member.edit_locks().key({ResourceClass::kHostFirst, key}, mode);
  }
  member.belong_to(parent);
  return member;
}

UndoTurn turn(Execution& member, std::uint64_t age) { return {&member, {1, CommitSequence{age}}}; }

// As they are undone.
Turns undone(std::vector<UndoTurn> turns) {
  std::reverse(turns.begin(), turns.end());
  Turns names;
  for (const UndoTurn& each : turns) {
    names.emplace_back(each.execution->id.value, each.entry.sequence.value);
  }
  return names;
}

// A tree whose members keep their locks for the operation. All choices are those of its seed.
class Tree {
 public:
  explicit Tree(std::uint64_t seed) : random_(seed) {
    add(members_, nullptr, some_keys(8));
    add(members_, members_[0].get(), some_keys(8));
    const std::size_t count = 4 + random_.below(6);
    while (members_.size() < count) {
      Execution* const parent = members_[random_.below(members_.size())].get();
      add(members_, parent, some_keys(2),
          random_.below(4) == 0 ? LockMode::kShared : LockMode::kExclusive);
    }
    for (std::size_t i = 0; i < count; ++i) {
      lives_.push_back({.steps = 1 + random_.below(4), .never_ends = i < 2});
    }
    lives_[0].has_begun = lives_[0].holds = true;
  }

  [[nodiscard]] Execution& root() const { return *members_[0]; }

  void go_forward(std::size_t actions) {
    while (actions-- > 0) act(random_.below(members_.size()));
  }

  // The domain of a member fails, usually that of the first child, and some of its turns are undone
  // while others go forward.
  void undo_some_of_a_domain() {
    const std::size_t head = random_.below(4) != 0 ? 1 : 1 + random_.below(members_.size() - 1);
    if (!lives_[head].has_begun || lives_[head].has_ended) return;
    fail(head);
    const UndoLocks of_domain = locks(head);
    RollbackPlan plan(*members_[head], in_undo_order(*members_[head], turns(head), of_domain),
                      of_domain);
    for (std::size_t left = random_.below(8); left > 0 && plan.left() > 1; --left) {
      if (!undo_next(plan)) plan.put_back(*plan.begun().front());
      if (random_.below(4) == 0) go_forward(3);
    }
  }
  void fail(std::size_t head) {
    for (std::size_t i = head; i < members_.size(); ++i) {
      Life& life = lives_[i];
      if (!is_below(i, head) || life.has_failed) continue;
      life.has_failed = true;
      const bool is_in_a_step =
          life.has_begun && !life.has_ended && !waits_for_children(i) && random_.below(2) == 0;
      if (is_in_a_step) life.ages.push_back(kUnfinishedStep.value);
    }
    const auto has_turns = [](const Life& life) { return !life.ages.empty(); };
    for (std::size_t i = head + 1; i < members_.size(); ++i) {
      const bool has_some = has_turns(lives_[i]) || any_below(i, has_turns);
      if (is_below(i, head) && !has_some) lives_[i].holds = false;
    }
  }

  [[nodiscard]] std::vector<UndoTurn> turns(std::size_t head = 0) const {
    std::vector<UndoTurn> all;
    for (std::size_t i = members_.size(); i-- > head;) {
      if (!is_below(i, head)) continue;
      for (const std::uint64_t age : lives_[i].ages) all.push_back(turn(*members_[i], age));
    }
    return all;
  }
  [[nodiscard]] UndoLocks locks(std::size_t head = 0) const {
    UndoLocks locks;
    for (std::size_t i = head; i < members_.size(); ++i) {
      if (!is_below(i, head) || members_[i]->locks().empty()) continue;
      const bool holds = lives_[i].holds;
      if (holds) locks.holders.push_back(members_[i].get());
      if (i == head || !any_below(i, [](const Life&) { return true; })) continue;
      locks.keepers.push_back(members_[i].get());
      if (!holds) locks.takers.push_back(members_[i].get());
    }
    return locks;
  }
  // Undoes `turns`, of the whole tree. False: one of them waited for a lock that comes later.
  [[nodiscard]] bool undo(std::vector<UndoTurn> turns) {
    const std::vector<Life> before = lives_;
    RollbackPlan plan(*members_[0], std::move(turns), locks());
    bool all = true;
    while (all && plan.left() != 0) all = undo_next(plan);
    lives_ = before;
    return all;
  }

 private:
  struct Life {
    std::size_t steps;
    bool never_ends;
    std::vector<std::uint64_t> ages{};  // of its steps, the newest last
    bool has_begun = false;
    bool has_ended = false;
    bool has_failed = false;
    bool holds = false;
  };

  // Each with a probability of one in `n`.
  std::vector<std::string> some_keys(std::uint64_t n) {
    std::vector<std::string> keys;
    for (const char* const key : {"a", "b"}) {
      if (random_.below(n) == 0) keys.emplace_back(key);
    }
    return keys;
  }

  [[nodiscard]] bool is_below(std::size_t member, std::size_t above) const {
    for (const Execution* at = members_[member].get(); at != nullptr; at = at->parent_execution()) {
      if (at == members_[above].get()) return true;
    }
    return false;
  }

  void act(std::size_t i) {
    Life& life = lives_[i];
    if (life.has_ended || life.has_failed) return;
    if (!life.has_begun) {
      const Life& parent = lives_[members_[i]->parent_execution()->id.value - 1];
      if (parent.ages.empty() || !may_hold(i)) return;  // it was not spawned, or waits
      life.has_begun = life.holds = true;
      return;
    }
    if (waits_for_children(i)) return;
    if (life.ages.size() < life.steps) return life.ages.push_back(++now_);
    if (life.never_ends) return;
    life.has_ended = true;
    life.holds = false;
  }

  // Its first step has spawned them.
  [[nodiscard]] bool waits_for_children(std::size_t i) const {
    return !lives_[i].ages.empty() &&
           any_below(i, [](const Life& child) { return !child.has_ended; });
  }

  [[nodiscard]] bool any_below(std::size_t above,
                               const std::function<bool(const Life&)>& is) const {
    for (std::size_t i = above + 1; i < members_.size(); ++i) {
      if (is_below(i, above) && is(lives_[i])) return true;
    }
    return false;
  }

  [[nodiscard]] bool may_hold(std::size_t member) const {
    const EntryLocks& locks = members_[member]->locks();
    for (std::size_t key = 0; key < locks.size(); ++key) {
      bool is_covered = false;
      bool is_in_the_way = false;
      for (std::size_t i = 0; i < members_.size(); ++i) {
        const auto mode = members_[i]->locks().find(locks.key(key));
        if (i == member || !mode || !lives_[i].holds) continue;
        is_covered = is_covered || (is_below(member, i) && *mode >= locks.mode(key));
        is_in_the_way = is_in_the_way || *mode == LockMode::kExclusive ||
                        locks.mode(key) == LockMode::kExclusive;
      }
      if (is_in_the_way && !is_covered) return false;
    }
    return true;
  }

  // False: the turn has begun, and waits for a lock.
  bool undo_next(RollbackPlan& plan) {
    const UndoTurn turn = *plan.begin_next();
    const std::size_t member = turn.execution->id.value - 1;
    Life& life = lives_[member];
    if (!life.holds && !may_hold(member)) return false;
    life.holds = turn.kind != UndoTurn::Kind::kLast;
    if (turn.kind == UndoTurn::Kind::kStep) {
      REQUIRE(is_covered_from_above(member));
      REQUIRE(life.ages.back() == turn.entry.sequence.value);
      life.ages.pop_back();
    }
    plan.end(*turn.execution);
    if (plan.newest_of(*turn.execution) == nullptr && life.has_failed && member != 0) {
      life.holds = false;
    }
    return true;
  }
  [[nodiscard]] bool is_covered_from_above(std::size_t member) const {
    for (const Execution* at = members_[member]->parent_execution(); at != nullptr;
         at = at->parent_execution()) {
      if (!lives_[at->id.value - 1].holds && !at->locks().empty()) return false;
    }
    return true;
  }

  Random random_;
  Members members_;
  std::vector<Life> lives_;  // of members_
  std::uint64_t now_ = 0;
};

}  // namespace

TEST_CASE("turns are undone from the newest to the oldest") {
  Members members;
  Execution& root = add(members, nullptr);
  Execution& one = add(members, &root, {"a"});
  Execution& other = add(members, &root, {"a"});
  const std::vector<UndoTurn> turns{turn(other, 3), turn(one, 4), turn(root, 1), turn(one, 2)};

  CHECK(undone(in_undo_order(root, turns)) == Turns{{2, 4}, {3, 3}, {2, 2}, {1, 1}});
  CHECK(undone(in_undo_order(root, turns, {.holders = {&other}})) ==
        Turns{{3, 3}, {2, 4}, {2, 2}, {1, 1}});
}

TEST_CASE("a half undone member and its descendants come before an undo that needs its lock") {
  Members members;
  Execution& root = add(members, nullptr);
  Execution& child = add(members, &root);
  Execution& holder = add(members, &child, {"k"});
  Execution& below = add(members, &holder);
  Execution& other = add(members, &root, {"k"});
  Execution& third = add(members, &root, {"m"});
  const std::vector<UndoTurn> turns{turn(root, 1),  turn(child, 2), turn(holder, 3),
                                    turn(below, 4), turn(third, 5), turn(other, 6)};

  CHECK(undone(in_undo_order(root, turns, {.holders = {&holder}})) ==
        Turns{{4, 4}, {3, 3}, {5, 6}, {6, 5}, {2, 2}, {1, 1}});
}

TEST_CASE("siblings under the lock of their parent are undone by age, whoever holds it, too") {
  const bool at_the_root = GENERATE(false, true);
  Members members;
  Execution& root = add(members, nullptr,
                        at_the_root ? std::vector<std::string>{"k"} : std::vector<std::string>{});
  Execution& parent = add(members, &root, {"k"});
  Execution& holder = add(members, &parent, {"k"});
  Execution& other = add(members, &parent, {"k"});
  const std::vector<UndoTurn> turns{turn(parent, 1), turn(holder, 2), turn(other, 3)};
  const std::vector<Execution*> holders{at_the_root ? &root : &parent, &holder};

  CHECK(undone(in_undo_order(root, turns, {.holders = holders})) == Turns{{4, 3}, {3, 2}, {2, 1}});
}

TEST_CASE("those who share a key do not come before each other, but before who needs it alone") {
  const LockMode mode = GENERATE(LockMode::kShared, LockMode::kExclusive);
  Members members;
  Execution& root = add(members, nullptr);
  Execution& holder = add(members, &root, {"k"}, LockMode::kShared);
  Execution& other = add(members, &root, {"k"}, mode);
  const std::vector<UndoTurn> turns{turn(holder, 1), turn(other, 2)};

  CHECK(undone(in_undo_order(root, turns, {.holders = {&holder}})) ==
        (mode == LockMode::kShared ? Turns{{3, 2}, {2, 1}} : Turns{{2, 1}, {3, 2}}));
}

TEST_CASE("no turn of a tree with locks for the operation waits for the lock of a later one") {
  int by_age = 0;
  int moved = 0;
  for (std::uint64_t seed = 1; seed <= 40'000; ++seed) {
    INFO("seed " << seed);
    Tree tree(seed);
    tree.go_forward(10 + seed % 50);
    tree.undo_some_of_a_domain();
    tree.fail(0);
    const std::vector<UndoTurn> sorted = in_undo_order(tree.root(), tree.turns());
    const std::vector<UndoTurn> ordered = in_undo_order(tree.root(), tree.turns(), tree.locks());

    REQUIRE(tree.undo(ordered));
    const bool age_suffices = tree.undo(sorted);
    ++(age_suffices ? by_age : moved);
    if (age_suffices) REQUIRE(undone(ordered) == undone(sorted));
  }
  CHECK(by_age > 1000);
  CHECK(moved > 10);
}

TEST_CASE("a holder comes before what a finished member above needs to take its locks") {
  Members members;
  Execution& root = add(members, nullptr);
  Execution& holder = add(members, &root, {"k"});
  Execution& parent = add(members, &root, {"k"});
  Execution& child = add(members, &parent);
  const std::vector<UndoTurn> turns{turn(holder, 1), turn(child, 2)};

  CHECK(undone(in_undo_order(root, turns, {.holders = {&holder}, .takers = {&parent}})) ==
        Turns{{2, 1}, {4, 2}});
  CHECK(undone(in_undo_order(root, turns, {.holders = {&holder}})) == Turns{{4, 2}, {2, 1}});
}

TEST_CASE(
    "a holder comes before who needs its lock, whether one below that is undone first or not") {
  const bool takes_locks = GENERATE(false, true);
  const bool has_child = GENERATE(false, true);
  Members members;
  Execution& root = add(members, nullptr);
  Execution& holder = add(members, &root, {"k"});
  Execution& parent = add(members, &root, {"k"});
  Execution& child = add(members, &parent);
  std::vector<UndoTurn> turns{turn(holder, 1), turn(parent, 2)};
  if (has_child) turns.push_back(turn(child, 3));
  UndoLocks locks{.holders = {&holder}};
  if (takes_locks) locks.takers = {&parent};

  Turns expected{{2, 1}, {3, 2}};
  if (has_child) expected.insert(expected.begin() + (takes_locks ? 1 : 0), {4, 3});
  CHECK(undone(in_undo_order(root, turns, locks)) == expected);
}

TEST_CASE("of who holds its locks for its newest turn only that turn comes before newer ones") {
  Members members;
  Execution& root = add(members, nullptr);
  Execution& per_step = add(members, &root, {"k"});
  Execution& between = add(members, &root, {"k"});
  Execution& holder = add(members, &root, {"h"});
  Execution& needs = add(members, &root, {"h"});
  Execution& below = add(members, &holder, {"k"});
  const std::vector<UndoTurn> turns{turn(per_step, 1), turn(between, 2),  turn(holder, 3),
                                    turn(below, 4),    turn(per_step, 5), turn(needs, 6)};
  const UndoLocks locks{.holders = {&holder}, .holders_at_first = {&per_step}};

  // "needs" waits for what is left of the holder, and that for the newest step of "per_step".
  CHECK(undone(in_undo_order(root, turns, locks)) ==
        Turns{{2, 5}, {6, 4}, {4, 3}, {5, 6}, {3, 2}, {2, 1}});
}

TEST_CASE("nobody waits for who has held its locks since before its first step") {
  Members members;
  Execution& root = add(members, nullptr);
  Execution& steady = add(members, &root, {"k"}, LockMode::kShared);
  Execution& other = add(members, &root, {"k"}, LockMode::kShared);
  const std::vector<UndoTurn> turns{turn(steady, 1), turn(other, 2)};
  const ResourceKey k{ResourceClass::kHostFirst, "k"};

  CHECK(undone(in_undo_order(root, turns, {.limited = {k}, .never_gave_back = {&steady}})) ==
        Turns{{3, 2}, {2, 1}});
  CHECK(undone(in_undo_order(root, turns, {.holders = {&steady}, .limited = {k}})) ==
        Turns{{2, 1}, {3, 2}});
}

TEST_CASE("who shares a key that has a limit comes before who shares it, too") {
  Members members;
  Execution& root = add(members, nullptr);
  Execution& holder = add(members, &root, {"k"}, LockMode::kShared);
  Execution& other = add(members, &root, {"k"}, LockMode::kShared);
  const std::vector<UndoTurn> turns{turn(holder, 1), turn(other, 2)};
  UndoLocks locks{.holders = {&holder}};
  locks.limited.insert({ResourceClass::kHostFirst, "k"});

  CHECK(undone(in_undo_order(root, turns, locks)) == Turns{{2, 1}, {3, 2}});
}

TEST_CASE("a member below which another one has its locks already does not take its own") {
  Members members;
  Execution& root = add(members, nullptr);
  Execution& parent = add(members, &root, {"k"});
  Execution& child = add(members, &parent, {"k"});
  Execution& other = add(members, &root, {"k"});
  UndoLocks locks{.holders = {&child}, .takers = {&parent, &other}};

  forget_takers_above_holders(root, locks);
  CHECK(locks.takers == std::vector<Execution*>{&other});
}

TEST_CASE("an order is found in n log n looks, whoever holds which keys") {
  const int shape = GENERATE(0, 1, 2);
  const auto looks_for = [shape](std::size_t n) {
    Members members;
    Execution& root = add(members, nullptr);
    std::vector<UndoTurn> turns;
    UndoLocks locks;
    std::uint64_t age = 0;
    const auto undo = [&](Execution& member) { turns.push_back(turn(member, ++age)); };
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < n; ++i) keys.push_back(std::to_string(i));
    if (shape != 2) {
      for (const std::string& key : keys) undo(add(members, &root, {key}));
    }
    Execution* at = &root;
    if (shape == 0) {  // one member has all keys, and many descendants
      at = &add(members, &root, keys);
      locks.holders.push_back(at);
      for (std::size_t i = 0; i < n; ++i) undo(add(members, at));
    } else if (shape == 1) {  // a chain of members, each with a key
      for (const std::string& key : keys) {
        at = &add(members, at, {key});
        locks.holders.push_back(at);
        undo(*at);
      }
    } else {  // a chain without keys, with many at its end who need what another one has
      for (std::size_t i = 0; i < n; ++i) at = &add(members, at);
      for (std::size_t i = 0; i < n; ++i) undo(add(members, at, {"k"}));
      Execution& holder = add(members, &root, {"k"});
      locks.holders.push_back(&holder);
      undo(holder);
    }
    Looks looks;
    Looks* const outer = looks.begin();
    const std::size_t found = in_undo_order(root, turns, locks).size();
    looks.end(outer);
    REQUIRE(found == turns.size());
    return looks.total();
  };
  CHECK(looks_for(4000) <= 5 * looks_for(1000));
}

TEST_CASE("holders that need each other's locks are put in some order, and each turn is there") {
  Members members;
  Execution& root = add(members, nullptr);
  Execution& one = add(members, &root, {"a"});
  Execution& below_one = add(members, &one, {"b"});
  Execution& other = add(members, &root, {"b"});
  Execution& below_other = add(members, &other, {"a"});
  const std::vector<UndoTurn> turns{turn(one, 1), turn(other, 2), turn(below_one, 3),
                                    turn(below_other, 4)};

  Turns all = undone(in_undo_order(root, turns, {.holders = {&one, &other}}));
  std::sort(all.begin(), all.end());
  CHECK(all == Turns{{2, 1}, {3, 3}, {4, 2}, {5, 4}});
}

}  // namespace pv2::testing::undo_order_test
