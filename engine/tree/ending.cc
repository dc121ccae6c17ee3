// SPDX-License-Identifier: Apache-2.0
//
// The result of a root is kept before its members leave. The record of a child with a reported
// failure stays after its descendants have left, until its parent cannot ask for it any more.

#include "tree/ending.h"

#include <algorithm>
#include <utility>

#include "core/effects.h"
#include "model/names.h"
#include "model/tree_walk.h"
#include "model/tree_work.h"
#include "submission/results.h"
#include "tree/domains.h"
#include "tree/join.h"
#include "tree/members_at_work.h"
#include "tree/tree_works.h"

namespace pv2 {
namespace {

// Members that are looked at with a record of their parent, and in each piece of a later section.
// 128: more than most steps spawn; even if all of them leave, that takes less than half of the
// looks of a section.
std::size_t examined_at_once() { return std::max<std::size_t>(1, Looks::pauses_at / 4); }

// Members that left early and whose rows are deleted in one batch. The batch may wait to be filled,
// because a restart finds rows that a crash left.
constexpr std::size_t kDroppedAtOnce = 64;

bool has_messages(const Execution& member) {
  return member.inbox && !member.inbox->messages.empty();
}

// The end of `head` is durable: from here on EngineCore::find() does not find its members.
void note_end(Execution& head) {
  PV2_ASSERT(head.is_head() && !head.domain.is_over(), "a domain ends once");
  PV2_ASSERT(is_finished(head.record.state), "the head of a domain that ends has its last record");
  head.phase.move_to(Phase::kIdle);
  head.leave_turn();
  move_to(head, DomainState::kOver);
}

// Nothing below `parent` is left to be looked at; or another walk or work does that.
void forget_early_leave(EngineCore& core, const Execution& parent) PV2_REQUIRES(core.state_mutex) {
  auto& leaves = core.state.works.early_leaves;
  if (!leaves.empty()) leaves.erase(parent.id);
}

// Begins the work by which the members of a domain that is over leave.
void begin_end(EngineCore& core, Execution& head, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  TreeWork& work = begin_work(core, head, TreeWork::Kind::kEnd);
  forget_early_leave(core, head);  // its members leave, and it may stay
  const bool has_rows = head.first_child() != nullptr || (head.is_root() && has_messages(head));
  // Rows of members that left early, some perhaps from below `head`, are deleted first. They do not
  // wait for the work: the parent of another of these members may leave early before its end.
  const auto dropped = core.state.garbage.dropped.find(head.root()->id);
  if (dropped != core.state.garbage.dropped.end()) {
    core.state.garbage.delete_rows(std::move(dropped->second), effects);
    core.state.garbage.dropped.erase(dropped);
  }
  if (!has_rows || !core.keeps_records) return;
  work.garbage = std::make_unique<GarbageCommit>();
  work.garbage->root = head.root()->id;
  // Acknowledgements wait until the rows are deleted.
  ++core.state.garbage.pending[head.root()->id].chains;
}

// `member`, which has no children left, leaves the tree, the scheduler and the table of live
// executions. If `rows` is not nullptr its rows are added to that garbage.
void let_go(EngineCore& core, Execution& member, GarbageCommit* rows, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(!has_work(member), "a member that leaves has no work outstanding");
  PV2_ASSERT(member.first_child() == nullptr, "a member that leaves has no children left");
  PV2_ASSERT(member.phase != Phase::kInFlight, "a member that leaves has no record on the way");
  PV2_ASSERT(member.domain.rare->work == nullptr,
             "there is no work on the domain of a member that leaves");
  PV2_ASSERT(member.waiters.empty(), "a member that leaves has no waiters");
  PV2_ASSERT(!member.is_root() || !member.nonce_use.is_made(),
             "the use of a nonce went with the result of its root");
  Looks::one();
  if (member.type != nullptr) {  // else an operator bypassed it, and this program lacks its type
    TypeCounts& counts = core.counts_of(*member.type);
    ++(member.record.state == ProcedureState::kSuccess ? counts.succeeded : counts.undone);
  }
  count_no_return(member, NoReturn::kNone);
  if (member.root()->domain.rare->standing) member.root()->domain.rare->standing->erase(member.id);
  if (member.record.interrupted() != nullptr) --member.root()->domain.rare.edit().heads_that_say_it;
  core.abandon_waits(member);
  core.settle(member, Disposition::kComplete);
  core.state.live.erase(member.id);
  forget_early_leave(core, member);
  if (rows != nullptr && !member.is_root()) rows->left.push_back(member.id);
  if (rows != nullptr && has_messages(member)) {
    rows->inboxes.emplace_back(member.id, std::move(member.inbox));
  }
  for (TreeCursor* const walk : core.state.works.walks) {
    if (walk->at() == &member) walk->move();
  }
  if (!member.is_root()) unlink_child(member);
  retire_plan(member.domain, effects);
  effects.retired.emplace_back(&member);
}

// Like let_go(), at the end of the domain of `head`, and tells the listeners of the end.
void leave(EngineCore& core, const Execution& head, Execution& member, GarbageCommit* rows,
           Effects& effects) PV2_REQUIRES(core.state_mutex) {
  const Execution& root = *member.root();
  const bool ended_with_it = &member != &head && !member.record.reported &&
                             head.record.state == ProcedureState::kRolledBack &&
                             member.is_undone_with_its_tree();
  if (ended_with_it && !head.is_root()) {
    member.record.move_to(ProcedureState::kRolledBack,
                          head.record.bypassed ? MovedBy::kBypass : MovedBy::kStep);
  }
  if (ended_with_it)
    core.state.news.add(ProcedureNews::Kind::kFinished, member, head.domain.rare->cause);
  if (&member == &root) {
    core.state.news.add(ProcedureNews::Kind::kFinished, root,
                        root.record.failure() ? root.record.failure()->error : Status());
  }
  let_go(core, member, rows, effects);
}

// Whether nothing is left of a tree but its root, so that no work is needed for its end.
bool is_alone(const EngineCore& core, const Execution& root) PV2_REQUIRES(core.state_mutex) {
  return root.first_child() == nullptr && root.domain.works() == nullptr && !has_messages(root) &&
         !core.state.garbage.dropped.contains(root.id);
}

// All members below `head`, whose failure is reported, have left: gives its locks back and tells
// its parent.
void report_end(EngineCore& core, Execution& head, Effects& effects)
    PV2_REQUIRES(core.state_mutex) {
  Domain& domain = head.domain;
  PV2_ASSERT(head.first_child() == nullptr,
             "all members below a head leave before its end is reported");
  PV2_ASSERT(head.record.failure() != nullptr, "the record of a reported failure says why");
  PV2_ASSERT(domain.in_flight == 0, "no member of a domain that is over is in flight");
  core.abandon_waits(head);
  if (head.holds_locks()) core.settle(head, Disposition::kParkUnlock);
  head.record.holds_locks = false;  // even if its last record still says that it holds them
  PV2_ASSERT(head.record.state == ProcedureState::kRolledBack,
             "a domain whose failure is reported is undone");
  head.record.parked = false;
  note_parked(head);
  core.state.news.add(ProcedureNews::Kind::kFinished, head, domain.rare->cause);
  RareOfDomain& rare = domain.rare.edit();
  const bool in_wider = rare.failing != nullptr && rare.failing != &head;
  domain.deadlock_victim = false;
  domain.ending = EndingOrder::kNone;
  rare.parked_undos = 0;
  retire_plan(domain, effects);
  if (!in_wider) rare.failing = nullptr;
  if (!in_wider) rare.in_flight_inside = 0;
  core.flush();
  effects.log(LogLevel::kInfo, name_of(head) + " failed and is undone; its parent is told: " +
                                   head.record.failure()->error.to_string());
  in_wider ? child_ended_too_late(head) : child_finished(core, head, effects);
}

}  // namespace

void domain_ended(EngineCore& core, Execution& head, Effects& effects) {
  PV2_ASSERT(head.record.reported && !head.is_root(),
             "the end of an inner domain is reported by its record");
  note_end(head);
  begin_end(core, head, effects);
}

void finish_root(EngineCore& core, Execution& root, Effects& effects) {
  PV2_ASSERT(root.is_root() && is_finished(root.record.state),
             "a tree ends with the end of its root");
  PV2_ASSERT(!has_work(root), "a root that ends has no work outstanding");
  tell_result(core, root, effects);
  note_end(root);
  is_alone(core, root) ? leave(core, root, root, nullptr, effects) : begin_end(core, root, effects);
}

void end_all(EngineCore& core, TreeWork& work, Effects& effects) {
  Execution& head = work.head;
  while (work.at != &head || head.first_child() != nullptr) {
    if (!core.looks.have_room()) return;
    Execution& member = *work.at;
    if (member.first_child() != nullptr) {
      Looks::one();
      work.at = member.first_child();
    } else {
      work.at = member.parent_execution();
      leave(core, head, member, work.garbage.get(), effects);
    }
  }
  const auto over = take_off(work);
  const bool is_inner = !head.is_root();
  if (!is_inner) leave(core, head, head, over->garbage.get(), effects);
  if (over->garbage) core.state.garbage.delete_rows(std::move(over->garbage), effects);
  if (is_inner) report_end(core, head, effects);  // last: `head` may leave early from then on
}

bool is_spent(const Execution& member) {
  if (member.is_root()) return false;
  if (member.record.reported) return true;
  if (member.record.state != ProcedureState::kSuccess) return false;
  return !member.is_undone_with_its_tree() ||
         (member.record.undo.empty() && !member.record.no_return);
}

namespace {

void drop(EngineCore& core, Execution& child, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  PV2_ASSERT(is_spent(child) && child.phase == Phase::kIdle && child.domain.rare->work == nullptr,
             "a member that leaves early is spent, idle and has no work on its domain");
  // Only the first work of a tree has begun; the cursors of the others are at their heads, which do
  // not leave while they have a work. A function that takes a work off drops no child before the
  // tree has a next work, or none.
  if (const TreeWorks* const works = child.root()->domain.works()) {
    PV2_ASSERT(!works->queue.empty(), "the works of a tree are not empty");
    TreeCursor& cursor = works->queue.front()->cursor;
    if (cursor.at() == &child) cursor.move();
  }
  const ProcedureId root = child.root()->id;
  GarbageCommit* rows = nullptr;
  if (core.keeps_records) {
    std::unique_ptr<GarbageCommit>& dropped = core.state.garbage.dropped[root];
    if (!dropped) {
      dropped = std::make_unique<GarbageCommit>();
      dropped->root = root;
      ++core.state.garbage.pending[root].chains;
    }
    rows = dropped.get();
  }
  let_go(core, child, rows, effects);
  if (rows == nullptr || rows->left.size() < kDroppedAtOnce) return;
  core.state.garbage.delete_rows(std::move(core.state.garbage.dropped[root]), effects);
  core.state.garbage.dropped.erase(root);
}

// Once `parent` has succeeded and stays, so do its children. Those that were not spent when they
// were looked at are looked at again.
void look_again_if_it_stays(Execution& parent) {
  if (parent.first_child() == nullptr || parent.is_undone_with_its_tree()) return;
  parent.edit_place().children.unexamined = parent.first_child();
}

// `child` was looked at, and all that is below it and may leave: it leaves too if it is spent and
// nothing is below it.
void pass(EngineCore& core, Execution& child, Effects& effects) PV2_REQUIRES(core.state_mutex) {
  child.parent_execution()->edit_place().children.unexamined = child.siblings().next;
  if (is_spent(child) && child.first_child() == nullptr) drop(core, child, effects);
}

// Whether `member` had succeeded with nothing to undo, and has only taken its locks since, so that
// what is below it is undone under them. Children of it may have left before that, and not their
// rows.
bool has_only_taken_locks(const Execution& member) {
  const Record& record = member.record;
  const bool is_undone =
      record.state == ProcedureState::kFailed || record.state == ProcedureState::kRolledBack;
  if (!is_undone || !record.undo.empty() || record.history.size() == 0) return false;
  return record.history.at(record.history.size() - 1).is_of_locks();
}

// Whether `parent` may still ask how the children of its last spawn have ended.
bool may_ask_for_children(const Execution& parent) {
  return !is_spent(parent) && !has_only_taken_locks(parent);
}

// Walks over the members below `parent` that may leave, from `at`: children before their parents,
// and only below spent ones. Returns the member whose children it is at after `most` looks; or
// nullptr if there is nothing more to look at before the next record of `parent`.
Execution* drop_ended(EngineCore& core, Execution& parent, Execution* at, std::size_t most,
                      Effects& effects) PV2_REQUIRES(core.state_mutex) {
  for (; most != 0; --most) {
    Looks::one();
    Execution* const child = at->children().unexamined;
    if (child == nullptr && at == &parent) return nullptr;
    if (child == nullptr) {
      pass(core, *std::exchange(at, at->parent_execution()), effects);
      continue;
    }
    const bool is_of_last_spawn =
        child->place->spawned_at == at->children().last->place->spawned_at;
    if (is_of_last_spawn && may_ask_for_children(*at)) return nullptr;
    if (child->domain.rare->work != nullptr) return nullptr;  // its descendants are leaving already
    if (is_spent(*child) && child->first_child() != nullptr) {
      forget_early_leave(core, *child);
      look_again_if_it_stays(*child);
      at = child;
    } else {
      pass(core, *child, effects);
    }
  }
  return at;
}

// The walk below `parent` goes on at `at` in a later section; nullptr: it does not go on.
void go_on_later(EngineCore& core, Execution& parent, Execution* at)
    PV2_REQUIRES(core.state_mutex) {
  if (at == nullptr) return forget_early_leave(core, parent);
  core.state.works.early_leaves.insert_or_assign(parent.id, EarlyLeave{&parent, at});
  core.tree_work_waits.store(true);
}

}  // namespace

void drop_ended_children(EngineCore& core, Execution& parent, Effects& effects) {
  look_again_if_it_stays(parent);
  go_on_later(core, parent, drop_ended(core, parent, &parent, examined_at_once(), effects));
}

void drop_more_ended(EngineCore& core, Effects& effects) {
  auto& leaves = core.state.works.early_leaves;
  while (!leaves.empty() && core.looks.have_room()) {
    core.widen();  // the root may be in flight, and is alone when its last child has left
    const auto [parent, at] = leaves.begin()->second;
    // What is left below a parent that is stopped leaves at the end of its domain; or, if it goes
    // forward again, with its next record.
    const bool goes_forward = failing_domain(*parent) == nullptr && !parent->leaves();
    go_on_later(
        core, *parent,
        goes_forward ? drop_ended(core, *parent, at, examined_at_once(), effects) : nullptr);
  }
}

void drop_all_ended(EngineCore& core, Execution& root, Effects& effects) {
  std::vector<Execution*> members;
  for (Execution& member : Subtree(root)) members.push_back(&member);
  for (auto at = members.rbegin(); at != members.rend(); ++at) {  // children before their parents
    look_again_if_it_stays(**at);
    drop_ended(core, **at, *at, SIZE_MAX, effects);
  }
}

}  // namespace pv2
