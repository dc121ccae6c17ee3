// SPDX-License-Identifier: Apache-2.0
//
// Trees take turns: the first work of a tree goes on until it pauses or is over, then the first
// work of the next tree.

#include "tree/tree_works.h"

#include <algorithm>
#include <utility>

#include "core/effects.h"
#include "model/tree_work.h"
#include "tree/ending.h"
#include "tree/failure.h"
#include "tree/rollback.h"
#include "tree/rollback_planning.h"

namespace pv2 {
TreeWork& begin_work(EngineCore& core, Execution& head, TreeWork::Kind kind) {
  PV2_ASSERT(head.is_head() && head.domain.rare->work == nullptr, "a domain has at most one work");
  TreeWorks*& works = head.root()->domain.rare.edit().works;
  if (works == nullptr) works = &core.state.works.in_turn.emplace_back(*head.root());
  TreeWork& work = *works->queue.emplace_back(std::make_unique<TreeWork>(kind, head));
  head.domain.rare.edit().work = &work;
  core.tree_work_waits.store(true);
  return work;
}

std::unique_ptr<TreeWork> take_off(TreeWork& work) {
  auto& queue = work.head.root()->domain.works()->queue;
  PV2_ASSERT(queue.front().get() == &work && work.head.domain.rare->work == &work,
             "a work that is taken off is the first, and its head knows it");
  work.head.domain.rare.edit().work = nullptr;
  std::unique_ptr<TreeWork> over = std::move(queue.front());
  queue.pop_front();
  return over;
}

Execution* next_to_visit(EngineCore& core, TreeWork& work) {
  while (work.cursor.at() != nullptr && core.looks.have_room()) {
    Execution* const at = work.cursor.at();
    const bool arrives = work.cursor.arrives();
    work.cursor.move();
    if (arrives) return at;
  }
  return nullptr;
}

namespace {

void go_on(EngineCore& core, TreeWork& work, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  using Kind = TreeWork::Kind;
  Execution& head = work.head;
  PV2_ASSERT(!work.is_outside, "a work that is sorted without the mutex does not go on");
  if (work.kind != Kind::kEnd) core.widen();  // the root may be in flight, and alone
  // A wider domain has failed since, and the work on that one covers this domain.
  const bool taken_over = head.domain.failing() != &head && work.kind != Kind::kEnd;
  if (taken_over) return void(take_off(work));
  if (head.is_quarantined() && work.kind != Kind::kStop && work.kind != Kind::kEnd) {
    const auto over = take_off(work);
    begin_work(core, head, Kind::kStop);  // stops the members that this work may have begun
    return;
  }
  switch (work.kind) {
    case Kind::kStop:
      return stop_all(core, work, effects);
    case Kind::kPlan:
      return plan_all(core, work, effects);
    case Kind::kTurns: {
      const auto over = take_off(work);
      return begin_turns(core, head, effects);
    }
    case Kind::kEnd:
      return end_all(core, work, effects);
  }
}

}  // namespace

void go_on_with_sorted(EngineCore& core, TreeWork& work) {
  auto& outside = core.state.works.outside;
  const auto at = std::find_if(outside.begin(), outside.end(), [&](const TreeWorks& works) {
    return &works == work.head.root()->domain.works();
  });
  PV2_ASSERT(at != outside.end() && work.is_outside,
             "a work that was sorted is among those outside");
  work.is_outside = false;
  core.state.works.in_turn.splice(core.state.works.in_turn.end(), outside, at);
}

bool do_tree_works(EngineCore& core, Effects& effects) {
  auto& all = core.state.works.in_turn;
  while (!all.empty() && core.looks.have_room()) {
    TreeWorks& works = all.front();
    go_on(core, *works.queue.front(), effects);
    if (works.queue.empty()) {
      works.root.domain.rare.edit().works = nullptr;
      effects.durable.splice_back(std::exchange(works.put_off, {}));
      all.pop_front();
      continue;
    }
    auto& next = works.queue.front()->is_outside ? core.state.works.outside : all;
    next.splice(next.end(), all, all.begin());
  }
  drop_more_ended(core, effects);
  const bool is_over = all.empty() && core.state.works.early_leaves.empty();
  // It is written only when it changes, as it is near to what workers read before each step.
  if (is_over && core.tree_work_waits.load()) core.tree_work_waits.store(false);
  return !is_over;
}

}  // namespace pv2
