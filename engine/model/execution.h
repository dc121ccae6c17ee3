// SPDX-License-Identifier: Apache-2.0
//
// Execution: what the engine keeps of one procedure. The user's class never sees it.
//
// Which thread may touch it, by phase:
//
//     kInserting               none until its record comes back; then the publisher, under the
//                              state mutex
//     kQueued, kWaiting,       any thread that holds the state mutex
//     kIdle, kDropping
//     kInFlight                the worker that took it, without a lock, until it hands the record
//                              to the store; then the publisher, under the state mutex, or that
//                              worker with its share (core/state_lock.h). Any thread that holds the
//                              state mutex may change `waiters`, and in a wide section
//                              `wait.wake_pending`
//
// Once the procedure is durable, `record` changes only under the state mutex or the worker's share:
// to what a published record says, to what a restart would conclude from the records, or to a wait
// that needs no record. A worker that runs a step writes its changes into a Transition, which takes
// effect when it is published.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/block_cache.h>
#include <pv2/base/procedure_state.h>
#include <pv2/scheduler/scheduler_entry.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "model/domain.h"
#include "model/identity.h"
#include "model/inbox.h"
#include "model/looks.h"
#include "model/on_demand.h"
#include "model/outstanding_work.h"
#include "model/phase.h"
#include "model/record.h"
#include "model/reply.h"
#include "model/slot_list.h"
#include "model/state_of.h"
#include "model/wait_list.h"
#include "pv2/engine/procedure.h"
#include "pv2/engine/procedure_result.h"

namespace pv2 {

struct InsertCommit;

/// The record of a member that was in the middle of a step when its rollback was planned, as it was
/// before that. It is restored if a wider domain fails before an undo of that step is recorded.
struct StoppedStep {
  ProcedureState state;
  bool parked;
  std::uint32_t attempt;
  OptionalTime deadline;
  std::unique_ptr<Failure> failure;
};

/// Published neighbours in the tree. Children are in order of spawning.
struct Siblings {
  Execution* next = nullptr;
  Execution* prev = nullptr;
};

/// What an execution knows of its published children, and of what is below them. Guarded by the
/// state mutex.
struct Children {
  Execution* first = nullptr;
  Execution* last = nullptr;
  Execution* unexamined = nullptr;  ///< The oldest not yet seen by drop_ended_children().
  std::uint32_t unfinished = 0;
  /// Those that the last step to spawn any has spawned, finished or not, as far as they have
  /// records. Only listings use it.
  std::uint32_t joined = 0;
  /// Of a member whose type is final on success, until it has succeeded: how many of the members
  /// counted in RareOfDomain::beyond have it as their nearest ancestor of such a type.
  std::uint32_t beyond = 0;
  bool joins_mixed_types = false;  ///< The joined children are not all of one type.
};

/// The place of a member in a tree of more than one: of a child from when it is made, of a root
/// from when its first child is published.
struct TreePlace {
  // Set when the place is made and by belong_to(). Constant from when others know the procedure.
  Execution* root = nullptr;
  Execution* head = nullptr;    ///< Of its domain.
  Execution* beside = nullptr;  ///< Its nearest kConcurrent ancestor, or itself.
  /// Its nearest ancestor, no root, of a type that is final on success.
  Execution* final_above = nullptr;
  /// Of a child, durable: the parent's `visits` when it spawned this one.
  std::uint64_t spawned_at = 0;
  // Links. Guarded by the state mutex.
  Siblings siblings;
  Children children;
};

/// The wait of an execution, or its last one.
struct Wait {
  static constexpr std::uint32_t kNoTimer = UINT32_MAX;

  /// When its deadline passes in this run, by the monotonic clock. kNotDue: it has none.
  SteadyTime due = kNotDue;
  std::uint32_t timer_index = kNoTimer;  ///< Its place in the timer queue.
  std::uint32_t epoch = 0;               ///< A wake with an older epoch is stale.
  bool wake_pending = false;             ///< A wake came while it was in flight; it runs again.
  bool timed_out = false;                ///< Its deadline passed; the next run is told.
  bool is_reported = false;              ///< report_wait() has told the scheduler of its wait.
  bool ahead_of_record = false;          ///< No record says that it waits.
  /// How many back-offs in a row, this one included, because user code threw while making `object`.
  std::uint32_t without_object = 0;
};

/// What becomes of the locks of a member when an undo turn of it is over.
enum class LocksAfterTurn : std::uint8_t {
  kKept,       ///< Until nothing below it is left to undo: it has them for the operation.
  kIfAtOnce,   ///< Its next turn comes at once: they are kept unless somebody waits for them.
  kGivenBack,  ///< Its next turn takes them again.
};

/// The undo turns of a member of a domain that is being undone.
struct Turn {
  std::uint32_t step = 0;    ///< The step whose turn has begun; 0: none.
  bool takes_locks = false;  ///< A turn has begun that only takes its locks.
  std::uint32_t left = 0;    ///< How many turns it has left, this one included.
  bool leads = false;        ///< It is the head of the domain that is being undone.
  bool ends_domain = false;  ///< This turn is the last one of the domain.
  LocksAfterTurn locks_after = LocksAfterTurn::kKept;
  bool is_ahead = false;  ///< It may hold its locks for an undo that is known not to be called yet.
  /// It does not have its locks for the operation, but its descendants have worked under them.
  bool keeps_for_descendants = false;
  std::unique_ptr<StoppedStep> stopped;  ///< Set: its newest turn undoes an unrecorded step.
};

/// What few procedures have in this run. Guarded by the state mutex. Made, and while the procedure
/// is in flight changed, only by the thread that has it in flight, if there is one.
struct RareOfRun {
  Turn turn;
  std::unique_ptr<OutstandingWork> work;  ///< Offloaded work that has not ended.
  SteadyTime interrupted_due = kNotDue;   ///< As in its last Transition.
};

/// What the store has of a procedure.
enum class Stored : std::uint8_t {
  kWhole,       ///< All of it, once its first record is durable.
  kTorn,        ///< Its record names a root that cannot be its root; it stands alone.
  kLost,        ///< It stands for a root that has no record.
  kUnreadable,  ///< It stands for a root whose record cannot be read.
};

/// Whether a member has begun or passed its point of no return, as its root counts it: see
/// note_no_return().
enum class NoReturn : std::uint8_t {
  kNone,    ///< Its type has no such step.
  kAhead,   ///< It has not begun that step; or it has, and no longer counts: no_return_now().
  kBegun,   ///< Counted in RareOfDomain::begun of its root.
  kBeyond,  ///< Counted in RareOfDomain::beyond of its root, unless Execution::is_kept_above().
};

struct Execution final : SchedulerEntry, Identity, Recycled {
  // Flags. One byte each, because different threads write them; in the bytes that Identity leaves.
  /// Of a root: there are audit rows. Set under the state mutex; a worker reads it without the
  /// mutex when it writes the end. An order that the worker misses is an abort, which takes that
  /// end back.
  std::atomic<bool> audited{false};
  // These are of this run only.
  StateOf<Phase> phase{Phase::kInserting};
  Stored stored = Stored::kWhole;
  NoReturn no_return_mark = NoReturn::kNone;
  bool started = false;  ///< The current step was started, or may have been before a crash.
  bool has_unknown_fields = false;  ///< Its image has fields that this program does not know.
  bool is_given_away = false;       ///< Of a root: its result goes to its waiters and is not kept.

  OnDemand<TreePlace> place;  ///< Written through edit_place().

  // --- Durable, as published.
  Record record;                 ///< The last durable record, or a wait without a record after it.
  std::unique_ptr<Inbox> inbox;  ///< Most have none.

  // --- This run only.
  Wait wait;
  OnDemand<RareOfRun> rare_of_run;
  /// nullptr, as while it waits: made from arguments and image before it runs.
  std::unique_ptr<Procedure> object;
  SlotList slots;
  InsertCommit* inserting = nullptr;  ///< Its first record, while that is on the way.
  WaitList waiters;                   ///< Of a root: who waits for its result.
  Domain domain;                      ///< Used only in a head.

  /// Itself for a root.
  [[nodiscard]] Execution* root() const noexcept {
    return place.is_made() ? place->root : const_cast<Execution*>(this);
  }
  [[nodiscard]] bool is_root() const noexcept { return root() == this; }
  /// nullptr for a root. Any thread that may read root() may ask: the scheduler makes the family of
  /// a root when it meets the first child, without the state mutex, and a root's is not read here.
  [[nodiscard]] Execution* parent_execution() const noexcept {
    return is_root() ? nullptr : static_cast<Execution*>(parent());
  }
  /// Makes it a root, or a member of the tree of `above`, which spawned it. Its identity must be
  /// set before.
  void belong_to(Execution* above) {
    PV2_ASSERT(above != this, "no procedure is its own parent");
    set_parent(above);
    if (above != nullptr || place.is_made()) take_place();
  }
  /// Whether it is a root exactly if it has no parent. Before others know it.
  [[nodiscard]] bool stands_below_its_parent() const noexcept {
    return is_root() == (parent() == nullptr);
  }
  [[nodiscard]] TreePlace& edit_place() {
    if (!place.is_made()) take_place();
    return place.edit();
  }
  /// The head of its failure domain: itself if it is a root or reports its failure, else the
  /// nearest such ancestor.
  [[nodiscard]] Execution* head() const noexcept {
    return place.is_made() ? place->head : const_cast<Execution*>(this);
  }
  [[nodiscard]] bool is_head() const noexcept { return head() == this; }
  /// Its nearest kConcurrent ancestor, or itself if it has a place; nullptr: there is none. A root
  /// is never undone beside others.
  [[nodiscard]] Execution* beside() const noexcept { return place->beside; }
  [[nodiscard]] const Siblings& siblings() const noexcept { return place->siblings; }
  [[nodiscard]] const Children& children() const noexcept { return place->children; }
  [[nodiscard]] Execution* first_child() const noexcept {
    return place.is_made() ? place->children.first : nullptr;
  }
  /// Whether its tree has ended, or its domain has and its failure was reported: it is about to
  /// leave the table of live executions.
  [[nodiscard]] bool leaves() const noexcept {
    return root()->domain.state == DomainState::kOver ||
           (!is_head() && head()->domain.state == DomainState::kOver);
  }
  [[nodiscard]] bool is_quarantined() const noexcept {
    return root()->domain.state == DomainState::kQuarantined;
  }
  /// Of a head: the head of the domain around its own; nullptr for a root.
  [[nodiscard]] Execution* outer_domain() const noexcept {
    PV2_ASSERT(is_head(), "only a head has an outer domain");
    Looks::one();
    return is_root() ? nullptr : parent_execution()->head();
  }
  /// Whether it is below a member that is final on success and has succeeded: it stays.
  [[nodiscard]] bool is_kept_above() const noexcept;
  /// Whether it is undone if its tree is. Not if it has succeeded, and is final on success or below
  /// a member that is and has succeeded.
  [[nodiscard]] bool is_undone_with_its_tree() const noexcept;
  [[nodiscard]] const Turn& turn() const noexcept { return rare_of_run->turn; }
  /// The step whose undo turn has begun; 0: none.
  [[nodiscard]] std::uint32_t turn_step() const noexcept {
    return rare_of_run.is_made() ? rare_of_run->turn.step : 0;
  }
  /// Whether its turn to take its locks has begun: descendants are to be undone under them.
  [[nodiscard]] bool takes_locks() const noexcept {
    return rare_of_run.is_made() && rare_of_run->turn.takes_locks;
  }
  /// Whether a turn of it has begun, except one that only gives its locks back.
  [[nodiscard]] bool has_turn() const noexcept { return turn_step() != 0 || takes_locks(); }
  [[nodiscard]] Turn& edit_turn() { return rare_of_run.edit().turn; }
  void leave_turn() noexcept {
    if (!rare_of_run.is_made()) return;
    edit_turn().step = 0;
    edit_turn().takes_locks = false;
  }
  /// nullptr: all work that it has offloaded has ended.
  [[nodiscard]] OutstandingWork* work() const noexcept {
    return rare_of_run.is_made() ? rare_of_run->work.get() : nullptr;
  }
  [[nodiscard]] OutstandingWork& edit_work() {
    std::unique_ptr<OutstandingWork>& work = rare_of_run.edit().work;
    if (!work) work = std::make_unique<OutstandingWork>();
    return *work;
  }

 private:
  using SchedulerEntry::parent;  // the engine asks parent_execution()

  [[nodiscard]] bool is_final_once_it_ends() const noexcept;

  void take_place() {
    auto* const above = static_cast<Execution*>(parent());
    TreePlace& mine = place.edit();
    mine.root = above != nullptr ? above->root() : this;
    mine.head = above == nullptr || reports() ? this : above->head();
    mine.beside = above == nullptr                       ? nullptr
                  : undo_order == UndoOrder::kConcurrent ? this
                                                         : above->beside();
    mine.final_above = above == nullptr                 ? nullptr
                       : above->is_final_once_it_ends() ? above
                                                        : above->place->final_above;
  }
};

static_assert(sizeof(Execution) == 296, "there may be millions: docs/performance.md");

/// Whether it stands for a root whose record is missing or cannot be read.
[[nodiscard]] inline bool is_stand_in(const Execution& execution) noexcept {
  return execution.stored == Stored::kLost || execution.stored == Stored::kUnreadable;
}

}  // namespace pv2
