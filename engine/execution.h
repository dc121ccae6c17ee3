// SPDX-License-Identifier: Apache-2.0
//
// Execution: what the engine keeps of one procedure. The user's class never sees it.
//
// Who may touch it, by phase:
//   kInserting                nobody until its record comes back; then the publisher, under the
//   state mutex kQueued, kWaiting, kIdle  whoever holds the state mutex kInFlight the one worker
//   that took it, without a lock, until it hands the record to the store; then the
//                             publisher, under the state mutex
// The fields under "as of the last durable record" change only when a record is published: durable
// before visible. A worker that runs a step writes what it wants to change into a Transition.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/procedure_state.h>
#include <pv2/scheduler/scheduler_entry.h>

#include <atomic>
#include <cstdint>
#include <forward_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compact_bytes.h"
#include "inbox.h"
#include "looks.h"
#include "outstanding_work.h"
#include "pv2/engine/procedure_executor.h"
#include "pv2/engine/procedure_registry.h"
#include "record.h"
#include "rollback_plan.h"
#include "slot_list.h"

namespace pv2 {

struct InsertCommit;
struct TreeWork;
struct TreeWorks;

/// Where an execution is, in this run. Not persisted: recovery decides anew.
enum class Phase : std::uint8_t {
  kInserting,  ///< Its first record is on the way.
  kQueued,     ///< In the scheduler, or polled and about to be taken.
  kInFlight,   ///< A worker has taken it or runs its step, or the step's record is on the way.
  kWaiting,    ///< For children, a timer or an awaited value.
  kIdle,       ///< Nothing will happen to it by itself: finished, parked, quarantined, or its tree
               ///< failed.
  kDropping,   ///< A worker had polled it when its tree failed; it becomes kIdle when that worker
               ///< looks.
};

/// 128 bits over type, arguments and owner of a submission (reference: idempotency 2.3).
struct Fingerprint {
  /// How it was made; persisted.
  enum class Form : std::uint8_t {
    kJoined = 1,  ///< By older programs: an owner or a type with a zero byte may pass for another.
    kExact = 2,   ///< Of two submissions that differ it differs.
  };
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  Form form = Form::kExact;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

/// Who waits for a result, and how he is told.
struct Waiter {
  ProcedureExecutor::ResultCallback answer;
  bool on_pool = true;
  std::uint64_t ticket = 0;  ///< To withdraw a waiter whose patience ended.
};

/// What the record of a member says that was in the middle of a step when it was to be undone. It
/// counts again if a wider domain fails before anything of that undo is recorded.
struct StoppedStep {
  ProcedureState state;
  bool parked;
  std::uint32_t attempt;
  OptionalTime deadline;
  std::unique_ptr<Failure> failure;
};

using MembersById = std::map<ProcedureId, Execution*>;

/// What fails together is doing: a root, or a child whose failure is only reported, with all its
/// descendants. Used in these heads only, under the state mutex: so bits may share a byte.
struct TreeState {
  /// Of its own members, not those of domains within it: taken by a worker, and their record is not
  /// published yet.
  std::uint32_t in_flight = 0;
  /// The same of the domains within it too, while it is the widest one that has failed; else 0.
  std::uint32_t in_flight_inside = 0;
  bool failed : 1 = false;           ///< Published: from now on nothing of it goes forward.
  bool parked : 1 = false;           ///< Can neither be finished nor undone.
  bool rolling_back : 1 = false;     ///< in_flight reached 0 after the failure: `rollback` is made.
  bool abort_accepted : 1 = false;   ///< An abort is coming: no point of no return is passed.
  bool given_up : 1 = false;         ///< The failure that ends a deadlock is on the way.
  bool order_waits : 1 = false;      ///< A WaitingOrder is to end it: nothing of it begins.
  bool order_may_go_on : 1 = false;  ///< Something is over for which that may have waited.
  /// It counts as failed only so that the order can end it: no record says that it failed.
  bool stopped_for_order : 1 = false;
  /// The record of the order that ends it is durable. It may still wait to be published.
  bool ended_by_order : 1 = false;
  bool over : 1 = false;  ///< It ended with a failure that was reported, or within such a domain.
  std::unique_ptr<RollbackPlan> rollback;  ///< While it is being undone, parked or not.
  Status cause;              ///< Of the failure that was durable first: the result of the root.
  TreeWork* work = nullptr;  ///< What is being done to all of its members, a section at a time.
  /// The head of the widest domain around this one, itself included, that has failed; or nullptr.
  Execution* failing = nullptr;
  /// By what the records say of it and of the domains around it, after a restart: the first failure
  /// or abort.
  CommitSequence first_failure{UINT64_MAX};
  /// The same of itself and of the root: who is recorded later has not begun another step.
  CommitSequence stopped_since{UINT64_MAX};
  /// In an undo that is planned: members that are parked in theirs.
  std::uint32_t parked_undos = 0;
  // Of a root:
  TreeWorks* works = nullptr;  ///< Under way, or waiting to be, on all domains of its tree.
  // Of a root, so that an order does not look through all of its members:
  std::uint32_t beyond = 0;  ///< Members that are past their point of no return.
  /// Members that have begun to pass it, in no domain of which a record says that it failed.
  std::uint32_t begun = 0;
  /// By id, members that are parked, and heads of domains that are. nullptr: nobody was.
  std::unique_ptr<MembersById> standing;
  std::unique_ptr<MembersById> at_work;  ///< Members with offloaded work that has not ended.
  std::uint32_t heads_that_say_it =
      0;  ///< Of a root: heads whose record has `interrupted`, itself included.
};

struct Execution final : SchedulerEntry {
  // --- Identity: set before the insert, constant.
  const ProcedureType* type = nullptr;  ///< nullptr: not known to this program (quarantined).
  Execution* root = nullptr;            ///< Itself for a root.
  Execution* head = nullptr;            ///< Of its domain; see belong_to().
  Execution* beside = nullptr;          ///< The nearest that is `undone_beside`, itself included.
  // Links of the tree, of what is published: children in order of spawning.
  Execution* first_child = nullptr;
  Execution* last_child = nullptr;
  Execution* next_sibling = nullptr;
  Execution* prev_sibling = nullptr;
  Execution* unexamined = nullptr;  ///< Its oldest child that drop_ended_children() has yet to see.
  CompactBytes type_name;           ///< Only when `type` is nullptr.
  CompactBytes owner;
  CompactBytes arguments;  ///< The argument fields, encoded.
  Nonce nonce;
  Fingerprint fingerprint;  ///< What the nonce stands for.
  WallTime submitted{};
  std::uint64_t spawned_at = 0;  ///< The parent's `visits` with that spawn.

  Record record;                 ///< As of the last durable record, or of a wait that has none.
  std::unique_ptr<Inbox> inbox;  ///< Most have none.
  /// Of a root: there are audit rows. Set under the state mutex; a worker looks when it writes the
  /// end. An order that it does not see is an abort that takes that end back.
  std::atomic<bool> audited{false};
  /// Both constant, so they may share a byte: a child whose failure is reported, and fails nobody
  /// else; and one that is undone concurrently with its siblings of which that is also true.
  bool reports : 1 = false;
  bool undone_beside : 1 = false;

  // --- This run only. The small ones first: they share words with those above.
  /// With a deadline: when it passes in this run, whatever becomes of the wall clock.
  SteadyTime due = kNotDue;
  Phase phase = Phase::kInserting;
  bool wake_pending = false;  ///< Something arrived while it ran; it runs again.
  bool timed_out = false;     ///< Its deadline passed; told to the next run.
  /// It waits, or did last, without a record: of its state, deadline and error that has what was
  /// before.
  bool ahead_of_record = false;
  bool started = false;      ///< The current step was started (or may have been, before a crash).
  bool quarantined = false;  ///< Of a root: all of its tree is; see is_quarantined().
  bool torn = false;         ///< Its record names a root that cannot be one; it stands alone.
  bool lost = false;         ///< Stands for a root of which there is no record.
  bool unreadable = false;   ///< The same: there is one, but it cannot be read.
  bool leads_rollback = false;      ///< In its turn: the head of what is being undone.
  bool ends_tree = false;           ///< In its turn: nothing else of the domain is left to undo.
  bool wait_reported = false;       ///< The scheduler has been told whom it waits for.
  bool has_unknown_fields = false;  ///< Its image has some that this program does not know.
  // See note_no_return(). The first one is constant.
  bool has_no_return : 1 = false;     ///< Its type has a point of no return, or is not known.
  bool is_beyond : 1 = false;         ///< Counted in `beyond` of its root.
  bool has_begun_it : 1 = false;      ///< Counted in `begun` of its root.
  std::uint32_t object_failures = 0;  ///< In a row: user code threw while its object was made.
  std::uint32_t undo_step = 0;        ///< Not 0: it is this procedure's turn to undo this step.
  std::uint32_t undo_left = 0;        ///< Its turns that are left, this one included.
  std::uint32_t unfinished_children = 0;
  std::uint32_t timer_index = kNoTimer;  ///< Its place in the timer queue.
  std::uint32_t epoch = 0;  ///< Of its waits: a wake that carries an older one is stale.
  /// nullptr: made from arguments and image when it runs. So it is while it waits.
  std::unique_ptr<Procedure> object;
  SlotList slots;
  std::unique_ptr<OutstandingWork> work;  ///< What it offloaded and has not ended; most have none.
  std::unique_ptr<StoppedStep> stopped;   ///< Its newest turn undoes a step that no record names.
  InsertCommit* inserting = nullptr;      ///< Its first record, while that is on the way.
  std::forward_list<Waiter> waiters;      ///< Of a root: who waits for its result, newest first.
  TreeState tree;

  static constexpr std::uint32_t kNoTimer = UINT32_MAX;

  [[nodiscard]] bool is_root() const noexcept { return root == this; }
  [[nodiscard]] Execution* parent_execution() const noexcept {
    return static_cast<Execution*>(parent);
  }
  /// Makes it a root, or a member of the tree of `above`, which spawned it. `reports` and
  /// `undone_beside` are set.
  void belong_to(Execution* above) noexcept {
    PV2_ASSERT(above != this, "nobody spawns itself");
    PV2_ASSERT(above == nullptr || (above->root != nullptr && above->head != nullptr),
               "who spawns has a place in its tree");
    parent = above;
    root = above != nullptr ? above->root : this;
    head = above == nullptr || reports ? this : above->head;
    beside = undone_beside ? this : above != nullptr ? above->beside : nullptr;
  }
  /// The head of its failure domain: itself if it is a root or reports its failure, else the
  /// nearest such ancestor.
  [[nodiscard]] Execution& domain() noexcept {
    PV2_ASSERT(head != nullptr, "every member is in a domain");
    return *head;
  }
  /// Whether it has ended with its tree, or with a domain whose failure was reported, and only has
  /// not left the table of live executions yet.
  [[nodiscard]] bool leaves() const noexcept {
    return root->tree.over || (head != this && head->tree.over);
  }
  [[nodiscard]] bool is_quarantined() const noexcept { return root->quarantined; }
  [[nodiscard]] bool is_head() const noexcept { return head == this; }
  /// Of such a head: that of the domain around it; nullptr for a root.
  [[nodiscard]] Execution* outer_domain() const noexcept {
    PV2_ASSERT(is_head(), "another domain is around a head");
    Looks::one();
    return is_root() ? nullptr : &parent_execution()->domain();
  }
  [[nodiscard]] bool is_undone_with_its_tree() const noexcept {
    // A root has no parent that would compensate for it.
    return is_root() ||
           !(record.state == ProcedureState::kSuccess && type != nullptr && type->final_on_success);
  }
  [[nodiscard]] std::string_view name_of_type() const noexcept {
    return type != nullptr ? std::string_view(type->name) : type_name.view();
  }
};

}  // namespace pv2
