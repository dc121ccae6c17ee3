// SPDX-License-Identifier: Apache-2.0
//
// Read Audit::run(): one pass over the live procedures, in which each is compared with its
// neighbours and counted for its head and its root; then the counts; then the tables.

#include "state_audit.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "admission.h"
#include "engine.h"
#include "offloads.h"
#include "pv2/engine/procedure_executor.h"
#include "tree.h"

namespace pv2 {
namespace {

// More would not be read.
constexpr std::size_t kFindingsMax = 20;

std::string name_of(const Execution& execution) {
  return "procedure " + std::to_string(execution.id.value);
}

std::string number(std::size_t count) { return std::to_string(count); }

bool has_ended(const Execution& member) {
  return member.record.state == ProcedureState::kSuccess || member.record.reported;
}

// Not counted as a look, unlike Execution::outer_domain().
const Execution* domain_around(const Execution& head) {
  return head.is_root() ? nullptr : head.parent_execution()->head;
}

class Audit {
 public:
  Audit(const EngineState& state, const EngineCore& core) : state_(state), core_(core) {}

  std::vector<std::string> run() && {
    calm_ = state_.store_failure.ok() && !state_.stopping;
    for_each_work([&](const TreeWorks& /*works*/, const TreeWork& work) {
      if (work.kind == TreeWork::Kind::kStop) told_.push_back(&work.head);
    });
    for (const auto& [id, execution] : state_.live) look_at(id, *execution);
    if (children_linked_ != children_adopted_) {
      say("the lists of children have " + number(children_linked_) + " members, and " +
          number(children_adopted_) + " children are live");
    }
    if (calm_) compare_counts();
    look_at_timers();
    look_at_works();
    look_at_nonces();
    look_at_results();
    look_at_rows_to_delete();
    look_at_numbers();
    return std::move(found_);
  }

 private:
  /// What of one domain or of one tree was counted, by its head or root.
  struct Counted {
    std::size_t flight = 0;
    std::size_t inside = 0;
    std::size_t beyond = 0;
    std::size_t begun = 0;
    std::size_t standing = 0;
    std::size_t at_work = 0;
    std::size_t parked_undos = 0;
    std::size_t awaited = 0;  ///< Members that an order to end all of it waits for.
  };

  void say(std::string contradiction) {
    if (found_.size() < kFindingsMax) found_.push_back(std::move(contradiction));
  }
  void say_of(const Execution& execution, std::string_view contradiction) {
    say(name_of(execution) + ": " + std::string(contradiction));
  }
  // Whatever was compared with `counted`.
  void compare(const Execution& execution, std::string_view what, std::size_t said,
               std::size_t counted) {
    if (said == counted) return;
    say_of(execution,
           std::string(what) + " is said to be " + number(said) + ", and is " + number(counted));
  }

  [[nodiscard]] bool is_live(const Execution* execution, ProcedureId id) const {
    const auto at = state_.live.find(id);
    return at != state_.live.end() && at->second == execution;
  }
  // Whether a work that tells members of a failure may not have come to this domain yet; until it
  // does, the domain goes on as if the failure had been durable a moment later.
  [[nodiscard]] bool may_not_know(const Execution& member) const {
    if (told_.empty()) return false;
    for (const Execution* head = member.head; head != nullptr; head = domain_around(*head)) {
      if (std::find(told_.begin(), told_.end(), head) != told_.end()) return true;
    }
    return false;
  }

  void look_at(ProcedureId id, const Execution& member) {
    if (member.id != id) return say_of(member, "it is in the table as " + number(id.value));
    if (!(id.value < state_.next_id) && state_.loaded) {
      say_of(member, "its id has not been issued yet");
    }
    // Of an insert that the store has refused, or a child whose record it has, nothing is linked.
    if (member.record.state == ProcedureState::kInitializing) return look_at_new(member);
    if (member.inserting != nullptr || member.phase == Phase::kInserting) {
      say_of(member, "its first record is durable, and on the way");
    }
    look_at_place_in_tree(member);
    look_at_children(member);
    look_at_marks(member);
    if (!calm_) return;
    look_at_domain(member);
    look_at_phase(member);
    look_at_work(member);
    if (member.inbox) look_at_inbox(member);
  }

  void look_at_new(const Execution& member) {
    const bool known = member.phase == Phase::kInserting && member.inserting != nullptr;
    if (!known && calm_) say_of(member, "it has no record, and none is on the way");
    if (!known) return;
    if (member.inserting->execution != &member) {
      say_of(member, "its first record is of another one");
    }
    if (!member.is_root()) say_of(member, "it is inserted by itself, but is no root");
  }

  void look_at_place_in_tree(const Execution& member) {
    const Execution* const parent = member.parent_execution();
    const Execution* const root = parent == nullptr ? &member : parent->root;
    const Execution* const head = parent == nullptr || member.reports() ? &member : parent->head;
    const Execution* const beside = member.undo_order == UndoOrder::kConcurrent ? &member
                                    : parent != nullptr                         ? parent->beside
                                                                                : nullptr;
    if (parent != nullptr) ++children_adopted_;
    if (parent != nullptr && !is_live(parent, parent->id)) {
      say_of(member, "its parent is not live");
    }
    if (member.root != root) say_of(member, "its root is not that of its parent");
    if (member.head != head) say_of(member, "it is in another domain than its parent says");
    if (member.beside != beside) say_of(member, "it is undone beside others than its parent says");
    if (!member.waiters.empty() && !member.is_root()) {
      say_of(member, "somebody waits for its result, and it is a child");
    }
  }

  void look_at_children(const Execution& parent) {
    const Execution* before = nullptr;
    bool has_unexamined = parent.links.unexamined == nullptr;
    std::size_t unfinished = 0;
    for (const Execution* child = parent.links.first_child; child != nullptr;
         child = child->links.next_sibling) {
      ++children_linked_;
      if (child->parent_execution() != &parent || !is_live(child, child->id)) {
        return say_of(parent, "one of its children is not, or is not live");
      }
      if (child->links.prev_sibling != before) say_of(*child, "its older sibling is another one");
      if (!(parent.id < child->id)) say_of(*child, "its id is below that of its parent");
      if (before != nullptr && before->spawned_at > child->spawned_at) {
        say_of(*child, "it is older than the sibling before it");
      }
      has_unexamined = has_unexamined || parent.links.unexamined == child;
      // The parent is told when all that the child spawned has left.
      const bool is_leaving = child->record.reported && child->domain.work != nullptr;
      if (!has_ended(*child) || is_leaving) ++unfinished;
      before = child;
    }
    if (parent.links.last_child != before) say_of(parent, "its youngest child is another one");
    if (!has_unexamined) say_of(parent, "it is to look at a child that it has not");
    // In what has failed, what children say is heard by nobody until that goes on.
    if (!calm_ || goes_back(parent)) return;
    compare(parent, "its number of unfinished children", parent.unfinished_children, unfinished);
    if (unfinished != 0 && parent.record.state != ProcedureState::kWaiting) {
      say_of(parent, "it has unfinished children, and does not wait for them");
    }
    const bool waits_for_them =
        parent.record.state == ProcedureState::kWaiting && parent.phase == Phase::kWaiting;
    if (waits_for_them && unfinished == 0) say_of(parent, "it waits for children, and has none");
  }

  // What its root knows of it, so that orders need not look through the tree.
  void look_at_marks(const Execution& constant) {
    auto& member = const_cast<Execution&>(constant);
    Counted& counted = counted_[member.root];
    if (has_work(member)) ++counted.at_work;
    if (member.no_return_mark == NoReturn::kBeyond) ++counted.beyond;
    if (member.no_return_mark == NoReturn::kBegun) ++counted.begun;
    if (member.record.parked || member.domain.is_parked()) {
      ++counted.standing;
      const auto& standing = member.root->domain.standing;
      const auto at = standing ? standing->find(member.id) : decltype(standing->end())();
      if (!standing || at == standing->end() || at->second != &member) {
        say_of(member, "it is parked, and its root does not know");
      }
    }
    if (!calm_ || member.leaves()) return;
    const Execution* const failing = member.head->domain.failing;
    if (failing != nullptr && is_parked_in_undo(member)) ++counted_[failing].parked_undos;
    const NoReturn mark = member.no_return_mark;
    const NoReturn now = mark == NoReturn::kNone ? mark : no_return_now(member);
    const bool is_beyond = now == NoReturn::kBeyond;
    if ((mark == NoReturn::kBeyond) != is_beyond) {
      say_of(member, "it is counted wrongly among those past their point of no return");
    }
    const bool has_begun = now == NoReturn::kBegun;
    if ((mark == NoReturn::kBegun) != has_begun && !is_beyond && !may_not_know(member)) {
      say_of(member, "it is counted wrongly among those that have begun to pass it");
    }
  }

  // Whether something around it has failed, as far as its domain knows, or it leaves.
  [[nodiscard]] static bool goes_back(const Execution& member) {
    return member.head->domain.failing != nullptr || member.head->domain.is_over() ||
           member.root->domain.is_over();
  }

  void look_at_domain(const Execution& head) {
    const bool counts =
        !head.root->domain.is_over();  // the last record of a root is not counted down
    if (counts) {
      std::size_t flight = 0;
      if (head.phase == Phase::kInFlight || head.phase == Phase::kDropping) ++flight;
      if (has_work(head)) ++flight;
      counted_[head.head].flight += flight;
      if (head.head->domain.failing != nullptr)
        counted_[head.head->domain.failing].inside += flight;
    }
    if (!head.is_head()) {
      if (head.domain.work != nullptr || head.domain.is_stopped() || head.domain.is_over() ||
          head.domain.rollback) {
        say_of(head, "it is the head of no domain, and has the state of one");
      }
      return;
    }
    heads_.push_back(&head);
    const Domain& domain = head.domain;
    const Execution* const around = domain_around(head);
    const Execution* const outer = around != nullptr ? around->domain.failing : nullptr;
    const Execution* const failing = outer != nullptr      ? outer
                                     : domain.is_stopped() ? &head
                                                           : nullptr;
    if (domain.failing != failing && !domain.is_over() && !may_not_know(head)) {
      say_of(head, domain.failing == nullptr ? "it does not know what around it has failed"
                                             : "it takes another domain than the widest one that "
                                               "has failed for that");
    }
    if (domain.failing != nullptr && domain.failing->domain.state == DomainState::kForward) {
      say_of(head, "it knows of a failure that is none");
    }
    if (domain.rollback && domain.state == DomainState::kForward) {
      say_of(head, "it is undone, and has not failed");
    }
    const bool ends = domain.work != nullptr && domain.work->kind == TreeWork::Kind::kEnd;
    if (domain.is_over() && head.is_root() && !ends) say_of(head, "it is over, and does not leave");
    if (head.inbox && head.inbox->abort() != nullptr && !domain.is_stopped() && !domain.is_over()) {
      say_of(head, "it was aborted, and goes on");
    }
    if (domain.failing == &head && domain.work == nullptr && !domain.is_over() &&
        !head.is_quarantined()) {
      look_at_rollback(head);
    }
  }

  // What is undone, or is to be when nobody of it is in flight, and nobody works on all of it.
  void look_at_rollback(const Execution& head) {
    const Domain& domain = head.domain;
    if (!domain.rollback) {
      if (domain.in_flight_inside == 0 && !domain.is_parked() && !domain.makes_way()) {
        say_of(head, "it has failed, nobody of it is in flight, and nobody undoes it");
      }
      return;
    }
    std::size_t turns = 0;
    domain.rollback->for_each([&](const UndoTurn& turn) {
      ++turns;
      ++turns_[turn.execution];
      if (turn.execution->head->domain.failing != &head) {
        say_of(*turn.execution, "it is undone with another domain than its own");
      }
    });
    compare(head, "the number of turns that are left to undo", domain.rollback->left(), turns);
    const std::vector<Execution*> begun = domain.rollback->begun();
    for (const Execution* const member : begun) {
      if (member->turn.step == 0) say_of(*member, "its turn has begun, and undoes no step");
    }
    const bool stands = domain.in_flight_inside == 0 && !domain.is_parked() && !domain.makes_way();
    if (turns != 0 && begun.empty() && stands) {
      say_of(head, "turns of its undoing are left, and none has begun");
    }
    planned_.push_back(&head);
  }

  void look_at_phase(const Execution& member) {
    if (member.phase == Phase::kInFlight) ++in_flight_;
    const Execution* const failing = member.head->domain.failing;
    const bool is_over = member.root->domain.is_over() || member.head->domain.is_over();
    const bool waits = member.phase == Phase::kQueued || member.phase == Phase::kWaiting;
    // What is polled, and about to be taken, is queued and in no queue.
    if (member.phase != Phase::kQueued && stands_in_queue(member)) {
      say_of(member, "the scheduler has it in a queue, and it is not queued");
    }
    if (is_over) {
      if (waits) say_of(member, "it is over, and waits for something");
      return;
    }
    if (may_not_know(member)) return;
    if (failing != nullptr) {
      const bool has_turn = failing->domain.rollback && failing->domain.rollback->has_begun(member);
      if (waits && !has_turn) say_of(member, "what fails together has failed, and it goes forward");
      return;
    }
    const bool stands = member.record.parked || is_finished(member.record.state);
    if (stands && waits) say_of(member, "it has ended or is parked, and waits for something");
    if (!stands && member.phase == Phase::kIdle && !is_to_be_ended(member)) {
      say_of(member, "it goes forward, and nothing will happen to it");
    }
    if (member.turn.step != 0) say_of(member, "nothing has failed, and a step of it is undone");
    if (member.record.state == ProcedureState::kSuccess && member.phase == Phase::kIdle &&
        !member.locks.empty() && member.holds_locks()) {
      say_of(member, "it has succeeded, and holds locks");
    }
    if (member.phase == Phase::kWaiting && waits_for_nothing(member)) {
      say_of(member, "it waits for nothing");
    }
  }

  // Whether an order may be on the way that ends its domain, or one around that, though nothing has
  // failed: it has stopped all members, and its record is that of the head.
  [[nodiscard]] static bool is_to_be_ended(const Execution& member) {
    for (const Execution* head = member.head; head != nullptr; head = domain_around(*head)) {
      if (head != &member && head->phase == Phase::kInFlight) return true;
    }
    return false;
  }

  [[nodiscard]] bool stands_in_queue(const Execution& member) const {
    return core_.scheduler.place_of(member, 0).where != QueuePlace::Where::kOut;
  }

  // An abort that is accepted ends the wait of who was about to pass its point of no return.
  [[nodiscard]] static bool waits_for_nothing(const Execution& member) {
    const bool wants = member.inbox && !member.inbox->wanted.empty();
    return !member.record.deadline && member.unfinished_children == 0 && member.slots.empty() &&
           !wants && !has_work(member) && !member.root->domain.abort_accepted;
  }

  void look_at_work(const Execution& member) {
    const OutstandingWork* const work = member.work.get();
    if (work == nullptr) return;
    for (const auto& piece : work->pieces) {
      if (piece->id != member.id) say_of(member, "it has work of another one outstanding");
    }
    if (work->held_back) {
      if (work->pieces.empty()) say_of(member, "its record is held back for no work");
      if (member.phase != Phase::kInFlight)
        say_of(member, "its record is held back, and it goes on");
    }
    if (work->ended_with != nullptr) {
      if (work->pieces.empty()) say_of(member, "its end is put off for no work");
      ++counted_[work->ended_with].awaited;
    }
    if (work->last_order && work->last_order_awaits == 0) {
      say_of(member, "the order that ends it waits for nobody");
    }
    if (work->last_order) ordered_.push_back(&member);
  }

  void look_at_inbox(const Execution& member) {
    const Inbox& inbox = *member.inbox;
    std::size_t signals = 0;
    std::size_t bytes = 0;
    std::uint64_t last = 0;
    bool has_abort = inbox.abort() == nullptr;
    for (const auto& message : inbox.messages) {
      if (message->number <= last) say_of(member, "its messages are not in order");
      last = message->number;
      has_abort = has_abort || message.get() == inbox.abort();
      if (message->kind != InboxMessage::Kind::kSignal) continue;
      ++signals;
      bytes += Inbox::size_of(*message);
    }
    if (last >= inbox.next_number) say_of(member, "the number of its next message is taken");
    if (!has_abort) say_of(member, "it was aborted by a message that it has not");
    // Those that are on the way are counted too.
    if (inbox.signals < signals || inbox.signal_bytes < bytes) {
      say_of(member, "it has more signals than are counted");
    }
  }

  void compare_counts() {
    for (const Execution* const head : heads_) {
      if (head->root->domain.is_over()) continue;
      const Counted& counted = counted_[head];
      compare(*head, "the number in flight of its domain", head->domain.in_flight, counted.flight);
      compare(*head, "the number in flight of what failed with it", head->domain.in_flight_inside,
              counted.inside);
    }
    for (const Execution* const head : heads_) {
      if (!head->is_root()) continue;
      const Domain& domain = head->domain;
      const Counted& counted = counted_[head];
      compare(*head, "the number of its members past their point of no return", domain.beyond,
              counted.beyond);
      compare(*head, "the number of its members that have begun to pass it", domain.begun,
              counted.begun);
      compare(*head, "the number of its members that are parked, or heads of what is",
              domain.standing ? domain.standing->size() : 0, counted.standing);
      compare(*head, "the number of its members with offloaded work",
              domain.at_work ? domain.at_work->size() : 0, counted.at_work);
    }
    for (const Execution* const head : planned_) {
      compare(*head, "the number of undos that are parked", head->domain.parked_undos,
              counted_[head].parked_undos);
    }
    for (const Execution* const head : ordered_) {
      compare(*head, "the number of members whose work the order that ends it waits for",
              head->work->last_order_awaits, counted_[head].awaited);
    }
    if (!planned_.empty()) compare_turns();
    // Whoever spawns is in flight until its children are live.
    if (in_flight_ == 0 && state_.spawning != 0) {
      say(number(state_.spawning) + " children are about to be live, and no step runs");
    }
  }

  void compare_turns() {
    for (const auto& [id, member] : state_.live) {
      const Execution* const failing =
          member->head != nullptr ? member->head->domain.failing : nullptr;
      if (failing == nullptr || member->record.state != ProcedureState::kFailed) continue;
      if (member->head->domain.is_over() || member->record.reported) continue;
      if (std::find(planned_.begin(), planned_.end(), failing) == planned_.end()) continue;
      compare(*member, "the number of its steps that are left to undo", member->turn.left,
              turns_[member]);
    }
  }

  void look_at_timers() {
    std::size_t armed = 0;
    for (const auto& [id, member] : state_.live) {
      const bool has_timer = member->wait.timer_index != Wait::kNoTimer;
      armed += has_timer ? 1 : 0;
      if (has_timer && !state_.timers.has(*member)) {
        say_of(*member, "its timer is not where it says, or not due when it says");
      }
      if (!calm_) continue;
      if (has_timer && member->phase != Phase::kWaiting) {
        say_of(*member, "it has a timer, and does not wait");
      }
      // An abort that is accepted may have stopped it when its time had come.
      const bool waits_for_time = member->phase == Phase::kWaiting && member->record.deadline;
      if (waits_for_time && !has_timer && !member->root->domain.abort_accepted) {
        say_of(*member, "it waits for a deadline, and has no timer");
      }
    }
    if (armed != state_.timers.size()) {
      say("there are " + number(state_.timers.size()) + " timers, and " + number(armed) +
          " procedures have one");
    }
    if (!state_.timers.is_in_order()) say("the timers are not in order");
  }

  template <class Visit>
  void for_each_work(Visit visit) const {
    for (const auto* const list : {&state_.tree_works, &state_.works_outside}) {
      for (const TreeWorks& works : *list) {
        for (const auto& work : works.queue) visit(works, *work);
      }
    }
  }

  void look_at_works() {
    std::set<const TreeWork*> known;
    for_each_work([&](const TreeWorks& works, const TreeWork& work) {
      known.insert(&work);
      if (works.root.domain.works != &works) say_of(works.root, "it does not know its works");
      if (work.head.domain.work == &work && work.head.root == &works.root) return;
      say_of(work.head, "it does not know the work on its members");
    });
    for (const Execution* const head : heads_) {
      if (head->domain.work == nullptr || known.contains(head->domain.work)) continue;
      say_of(*head, "there is no such work on its members");
    }
  }

  void look_at_nonces() {
    std::string scratch;
    for (const auto& [nonce, entry] : state_.nonces) {
      const Completed* const completed = state_.completed.find(entry.id);
      const auto live = state_.live.find(entry.id);
      const bool is_its = (completed != nullptr && completed->nonce == nonce) ||
                          (live != state_.live.end() && live->second->nonce == nonce);
      if (!is_its) {
        say("nonce " + number(nonce.group) + "/" + number(nonce.value) + " is said to be that of " +
            "procedure " + number(entry.id.value) +
            ", which is not live, has no result in "
            "memory, or does not say so");
      }
    }
    const auto check = [&](const Nonce& nonce, ProcedureId id) {
      if (!nonce) return;
      const auto at = state_.nonces.find(nonce);
      if (at == state_.nonces.end() || at->second.id != id) {
        say("procedure " + number(id.value) + ": its nonce is not known as its own");
      }
    };
    for (const Completed& completed : state_.completed) {
      check(completed.nonce, completed.result.id);
    }
    for (const auto& [id, member] : state_.live) {
      const bool refused = member->record.state == ProcedureState::kInitializing &&
                           member->phase != Phase::kInserting;  // by a store that has failed
      // Its result has ended, and may be acknowledged and gone.
      const bool ended = member->root != nullptr && member->root->domain.is_over();
      if (refused || ended) continue;
      check(member->nonce, id);
      const auto at = state_.nonces.find(member->nonce);
      if (!member->nonce || is_stand_in(*member) || at == state_.nonces.end()) continue;
      if (!fingerprints_of(*member, scratch).match(at->second.fingerprint)) {
        say_of(*member, "it is not what its nonce was given to");
      }
    }
    if (state_.nonces_on_disk_only != 0 && !state_.store_knows_more_nonces) {
      say(number(state_.nonces_on_disk_only) +
          " nonces are known to the store alone, and it is not asked");
    }
  }

  void look_at_results() {
    std::size_t bytes = 0;
    std::uint64_t rows = 0;
    for (const Completed& completed : state_.completed) {
      const ProcedureId id = completed.result.id;
      bytes += CompletedResults::bytes_of(completed);
      rows += completed.bytes;
      if (state_.completed.find(id) != &completed) {
        say("the result of procedure " + number(id.value) + " is not found by its id");
      }
      if (id.value >= state_.next_id) {
        say("procedure " + number(id.value) + " has a result, and its id has not been issued yet");
      }
      const auto live = state_.live.find(id);
      if (live != state_.live.end() && !live->second->domain.is_over()) {
        say_of(*live->second, "it has a result, and is live");
      }
    }
    if (bytes != state_.completed.bytes()) {
      say("results in memory are said to take " + number(state_.completed.bytes()) +
          " bytes, and take " + number(bytes));
    }
    // A store keeps those too that are not in memory.
    const std::uint64_t kept = state_.retention.bytes();
    if (!state_.retention.counts()) return;
    if (core_.keeps_records ? kept < rows : kept != rows) {
      say("results that are kept are said to take " + number(kept) +
          " bytes, and those in memory take " + number(rows));
    }
  }

  void look_at_rows_to_delete() {
    for (const auto& [root, garbage] : state_.garbage) {
      if (garbage.chains == 0) {
        say("rows of the tree of procedure " + number(root.value) +
            " are remembered as being deleted, and nobody deletes them");
      }
    }
    for (const auto& [root, rows] : state_.dropped) {
      const auto live = state_.live.find(root);
      if (live == state_.live.end() || live->second->domain.is_over()) {
        say("rows of members of procedure " + number(root.value) +
            " wait for the end of its tree, which is over");
      }
      if (!state_.garbage.contains(root) || rows->root != root) {
        say("rows of members of procedure " + number(root.value) + " are not counted as its");
      }
    }
  }

  void look_at_numbers() {
    for (const auto& [id, commit] : state_.aborting) {
      if (commit->to != id) say("an abort on the way is of another procedure than is said");
      const auto live = state_.live.find(id);
      if (live != state_.live.end() && !live->second->domain.abort_accepted) {
        say_of(*live->second, "an abort of it is on the way, and it does not know");
      }
    }
    for (const auto& [id, commit] : state_.acknowledging) {
      if (commit->id != id) say("an acknowledgement is of another procedure than is said");
    }
    const bool issued = state_.next_id > state_.first_id;
    if (issued && state_.next_id > state_.durable_watermark) {
      say("ids up to " + number(state_.next_id) + " were issued, and only those below " +
          number(state_.durable_watermark) + " may be");
    }
    for (const auto& [key, limit] : state_.limits) {
      const bool of_type = key.cls == ResourceClass::kType;
      if (of_type && !core_.limits_types.load(std::memory_order_relaxed)) {
        say(to_string(key) + " has a limit, and it is said that no type has one");
      }
    }
  }

  const EngineState& state_;
  const EngineCore& core_;
  bool calm_ = true;                    // the store works, and nobody stops the engine
  std::vector<const Execution*> told_;  // heads whose members are being told of a failure
  std::vector<const Execution*> heads_;
  std::vector<const Execution*> planned_;  // heads of what is undone
  std::vector<const Execution*> ordered_;  // heads of what ends when its work has ended
  std::map<const Execution*, Counted> counted_;
  std::map<const Execution*, std::size_t> turns_;
  std::size_t children_linked_ = 0;
  std::size_t children_adopted_ = 0;
  std::size_t in_flight_ = 0;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> audit_state(EngineCore& core) {
  const Looks::Uncounted uncounted;
  core.flush();  // the scheduler learns what was settled in this section
  return Audit(core.state, core).run();
}

#ifdef PV2_AUDITS_ITSELF
void audit_now_and_then(EngineCore& core) {
  // As often as costs less than the rest of a debug build does, and small enough to be bounded.
  constexpr std::uint64_t kEvery = 4096;
  constexpr std::size_t kLiveMax = 256;
  constexpr std::size_t kResultsMax = 4096;
  if (++core.state.sections % kEvery != 0) return;
  if (core.state.live.size() > kLiveMax || core.state.completed.size() > kResultsMax) return;
  const std::vector<std::string> contradictions = audit_state(core);
  PV2_ASSERT(contradictions.empty(), contradictions.front().c_str());
}
#endif

std::vector<std::string> StateAudit::of(const ProcedureExecutor& executor) {
  EngineCore& core = executor.engine_->core;
  StateLock lock(core);
  return audit_state(core);
}

void StateAudit::change(const ProcedureExecutor& executor,
                        const std::function<void(EngineState&)>& change) {
  EngineCore& core = executor.engine_->core;
  StateLock lock(core);
  change(core.state);
}

}  // namespace pv2
