// SPDX-License-Identifier: Apache-2.0
//
// The first section plans the order and describes the order's own effect. For orders that end or
// undo a whole domain, the following sections describe each member. The last section plans the
// order again, because the tree may have changed since.

#include "orders/repair_preview.h"

#include <pv2/base/assert.h>

#include <utility>

#include "core/state_lock.h"
#include "model/names.h"
#include "model/tree_walk.h"
#include "orders/bypass.h"
#include "orders/messages.h"
#include "orders/repair_plan.h"
#include "steps/offloads.h"
#include "submission/ended_procedure.h"
#include "tree/domains.h"
#include "tree/failure.h"
#include "tree/member_step.h"
#include "tree/members_at_work.h"

namespace pv2 {
namespace {

using Lines = std::vector<std::string>;

// ---- One member ----

std::string steps_of(const Execution& member) {
  std::string steps;
  for (const UndoEntry& entry : member.record.undo) {
    if (!steps.empty()) steps += ", ";
    steps += name_of_step(member, entry.step);
  }
  return steps;
}

// Lists the steps of `member` that a rollback undoes; `what_of_it` says whether that will happen.
void describe_undo(Execution& member, std::string_view what_of_it, Lines& lines) {
  if (!member.record.undo.empty()) {
    lines.push_back(
        fmt::format("{} did {}, which is {}", name_of(member), steps_of(member), what_of_it));
  }
  const std::uint32_t begun = step_that_may_have_begun(member);
  if (begun == 0) return;
  lines.push_back(fmt::format("{} may have begun {}, which is {}", name_of(member),
                              name_of_step(member, begun), what_of_it));
}

void describe_rollback(Execution& member, Lines& lines) {
  if (!member.is_undone_with_its_tree()) {
    lines.push_back(name_of(member) + " has succeeded and stays as it is");
  } else if (member.record.no_return) {
    lines.push_back(name_of(member) +
                    " has passed its point of no return; nothing of it is undone");
  } else if (member.record.state != ProcedureState::kRolledBack) {
    describe_undo(member, "undone", lines);
  }
}

// Whether the member is cut off in the middle of a step that has no known undo.
bool leaves_step_unfinished(Execution& member) {
  const ProcedureState state = member.record.state;
  // While a member is in flight, `started` belongs to its worker.
  const bool began = member.phase == Phase::kInFlight || member.started;
  return began && state != ProcedureState::kSuccess && state != ProcedureState::kFailed &&
         member.record.step != 0 && member.type != nullptr && step_that_may_have_begun(member) == 0;
}

void describe_locks(const Execution& member, Lines& lines) {
  if (!member.record.holds_locks) return;
  const EntryLocks& locks = member.locks();
  for (std::size_t i = 0; i < locks.size(); ++i) {
    if (locks.mode(i) != LockMode::kExclusive) continue;
    lines.push_back(fmt::format("{} gives up its lock on {}; others may change it as it is",
                                name_of(member), to_string(locks.key(i))));
  }
}

void describe_bypass(Execution& member, ProcedureId head, Lines& lines) {
  if (member.is_undone_with_its_tree()) describe_undo(member, "not undone", lines);
  if (leaves_step_unfinished(member)) {
    lines.push_back(fmt::format("{} may have begun {}, which is neither finished nor undone",
                                name_of(member), name_of_step(member, member.record.step)));
  }
  if (has_work(member)) {
    lines.push_back(fmt::format(
        "work that {} offloaded at step {} still runs; the tree ends, and gives its locks up, when "
        "it has ended",
        name_of(member), name_of_step(member, member.work()->pieces.front()->step)));
  }
  describe_locks(member, lines);
  const bool has_ended = member.record.state == ProcedureState::kSuccess ||
                         member.record.state == ProcedureState::kRolledBack;
  if (member.id != head && !has_ended) {
    lines.push_back(name_of(member) + " is cut off as it stands");
  }
}

// ---- The order ----

std::string skipped_undo(const Order& order) {
  if (order.step == 0) {
    return fmt::format(
        "{} does not take its locks again; what it has spawned is undone without them",
        name_of(*order.about));
  }
  return fmt::format("{} did {}, which is not undone; the rollback goes on as if it were",
                     name_of(*order.about), name_of_step(*order.about, order.step));
}

std::string skipped_step(const Order& order) {
  const Execution& member = *order.about;
  return fmt::format("{} failed at {}, which may be half done and counts as done; {}",
                     name_of(member), name_of_step(member, order.step),
                     order.following == 0 ? "it ends then, without a result"
                                          : name_of_step(member, order.following) +
                                                " follows, unless the order names another step");
}

// Used under the state mutex, which may be released between pause() and go_on().
class Preview {
 public:
  explicit Preview(RepairVerb verb) : verb_(verb) {}

  // Plans the order and describes its own effect, or returns why it is refused.
  Status begin(EngineCore& core, Execution& target) PV2_REQUIRES(core.state_mutex) {
    const auto order = plan_order(core, target, verb_, 0);
    if (!order.ok()) return order.status();
    const Execution& about = *order->about;
    switch (order->kind) {
      case Order::Kind::kRetryUndo:
        lines_.push_back(
            fmt::format("the undo at which {} is parked is tried again", name_of(about)));
        return Status();
      case Order::Kind::kRetryStep:
        lines_.push_back(fmt::format("{} makes {} again, at which it failed", name_of(about),
                                     name_of_step(about, order->step)));
        return Status();
      case Order::Kind::kEndWait:
        lines_.push_back(fmt::format("the wait of {} ends now", name_of(about)));
        return Status();
      case Order::Kind::kSkipUndo:
        lines_.push_back(skipped_undo(*order));
        return Status();
      case Order::Kind::kSkipStep:
        lines_.push_back(skipped_step(*order));
        return Status();
      case Order::Kind::kSendBack:
        describe_all(*order->head);
        return Status();
      case Order::Kind::kAbortRoot:
        return begin_abort(*order->head);
      case Order::Kind::kBypass:
        begin_bypass(*order->head);
        return Status();
    }
    return Status();
  }

  // Returns whether all members are described. If not, this section has no room for more looks.
  bool describe_members(EngineCore& core) PV2_REQUIRES(core.state_mutex) {
    if (!walk_) return true;
    for (; walk_->at() != nullptr && core.looks.have_room(); walk_->move()) {
      Execution& member = *walk_->at();
      if (!walk_->arrives() || (member.id != of_ && is_over(member))) continue;
      if (verb_ == RepairVerb::kBypass) {
        if (waits_for_.empty() && is_busy(core, member)) waits_for_ = name_of(member);
        describe_bypass(member, of_, lines_);
      } else {
        describe_rollback(member, lines_);
      }
    }
    return walk_->at() == nullptr;
  }

  // The mutex may be released between pause() and go_on(). The engine knows the walk, and moves it
  // on if the member that it has reached leaves.
  void pause(EngineCore& core) PV2_REQUIRES(core.state_mutex) {
    paused_at_ = {walk_->at(), walk_->at()->id};
    core.state.works.walks.push_back(&*walk_);
  }
  void go_on(EngineCore& core) PV2_REQUIRES(core.state_mutex) {
    std::erase(core.state.works.walks, &*walk_);
    PV2_ASSERT(walk_->at() != paused_at_.member ||
                   core.state.live.find(paused_at_.id) == paused_at_.member,
               "a walk goes on from a member that has not left");
  }
  [[nodiscard]] bool has_paused() const noexcept { return paused_at_.member != nullptr; }

  // Returns all lines if the order still means the same.
  Result<Lines> end(EngineCore& core, Execution& target) PV2_REQUIRES(core.state_mutex) {
    if (!of_) return std::move(lines_);
    if (has_paused()) {
      if (Status changed = why_it_changed(core, target); !changed.ok()) return changed;
    }
    Execution* const head = core.state.live.find(of_);
    PV2_ASSERT(head != nullptr, "the procedure that an order is about is live");
    if (verb_ == RepairVerb::kBypass) look_again(core, *head);
    if (!waits_for_.empty()) {
      lines_.push_back(fmt::format(
          "the order waits until {} has ended what it is doing, by which some of this may change; "
          "nothing else of the tree begins meanwhile",
          waits_for_));
    }
    lines_.push_back(name_of(*head) + (verb_ == RepairVerb::kBypass
                                           ? " ends as bypassed, with all its children"
                                           : " ends as undone"));
    return std::move(lines_);
  }

 private:
  void describe_all(Execution& head) {
    of_ = head.id;
    walk_.emplace(head);
  }

  // Messages::abort() carries this order out, and refuses it in the same words.
  Status begin_abort(Execution& root) {
    if (Status refusal = why_not_aborted_anew(root); !refusal.ok()) return refusal;
    if (Status refusal = why_not_abortable(root); !refusal.ok()) return refusal;
    describe_all(root);
    return Status();
  }

  void begin_bypass(Execution& head) {
    describe_all(head);
    if (head.stored != Stored::kLost) return;
    lines_.push_back(name_of(head) +
                     " has no record: what it did, and which locks it held, is not known");
  }

  Status why_it_changed(EngineCore& core, Execution& target) PV2_REQUIRES(core.state_mutex) {
    Preview now(verb_);
    if (Status refusal = now.begin(core, target); !refusal.ok()) return refusal;
    if (now.of_ == of_) return Status();
    return Status(StatusCode::kUnavailable,
                  fmt::format("what is parked of the tree of {} has changed meanwhile; ask again",
                              name_of(*target.root())));
  }

  // Since it was described, the member for which the order would wait may have ended its step, and
  // another member may have begun one. In a stopped domain the busy member is known exactly.
  void look_again(EngineCore& core, Execution& head) PV2_REQUIRES(core.state_mutex) {
    if (!head.domain.is_stopped()) return;
    const Execution* const busy_one = busy_member(core, head);
    if (busy_one == nullptr) waits_for_.clear();
    if (busy_one != nullptr && waits_for_.empty()) waits_for_ = name_of(*busy_one);
  }

  RepairVerb verb_;
  Lines lines_;
  ProcedureId of_;                  // the head of the domain whose members are described, if any
  std::optional<TreeCursor> walk_;  // at the member that is described next
  std::string waits_for_;           // a member in the middle of a step; "": none
  struct {
    const Execution* member = nullptr;  // perhaps destroyed since; nullptr: the walk never paused
    ProcedureId id;
  } paused_at_;
};

}  // namespace

std::optional<Result<Lines>> preview_order(EngineCore& core, ProcedureId id, RepairVerb verb) {
  Preview preview(verb);
  for (;;) {
    {
      StateLock lock(core);
      if (preview.has_paused()) preview.go_on(core);
      Execution* const target = core.find(id);
      if (target == nullptr) return std::nullopt;
      if (Status aside = why_set_aside(core, id); !aside.ok()) return {std::move(aside)};
      if (!preview.has_paused()) {
        if (Status refusal = preview.begin(core, *target); !refusal.ok()) return {refusal};
      }
      if (preview.describe_members(core)) return preview.end(core, *target);
      preview.pause(core);
    }
    if (core.between_sections) core.between_sections();
    core.waiting_for_state.give_way();
  }
}

}  // namespace pv2
