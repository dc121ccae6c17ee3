// SPDX-License-Identifier: Apache-2.0
//
// Execution: what the engine keeps of one procedure. The user's class never sees it.
//
// Who may touch it, by phase:
//
//     kInserting               nobody until its record comes back; then the publisher, under the
//                              state mutex
//     kQueued, kWaiting,       any thread that holds the state mutex
//     kIdle, kDropping
//     kInFlight                the one worker that took it, without a lock, until it hands the
//                              record to the store; then the publisher, under the state mutex
//
// `record` changes only when a record is published: durable before visible. A worker that runs a
// step writes what it wants to change into a Transition.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/procedure_state.h>
#include <pv2/scheduler/scheduler_entry.h>

#include <atomic>
#include <cstdint>
#include <forward_list>
#include <memory>
#include <string>

#include "model/domain.h"
#include "model/identity.h"
#include "model/inbox.h"
#include "model/looks.h"
#include "model/outstanding_work.h"
#include "model/phase.h"
#include "model/record.h"
#include "model/reply.h"
#include "model/slot_list.h"
#include "model/state_of.h"
#include "pv2/engine/procedure_registry.h"
#include "pv2/engine/procedure_result.h"

namespace pv2 {

struct InsertCommit;

/// A caller that waits for a result.
struct Waiter {
  Reply<Result<ProcedureResult>> reply;
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

/// Neighbours in the tree, of what is published: children in order of spawning.
struct TreeLinks {
  Execution* first_child = nullptr;
  Execution* last_child = nullptr;
  Execution* next_sibling = nullptr;
  Execution* prev_sibling = nullptr;
  Execution* unexamined = nullptr;  ///< Its oldest child that drop_ended_children() has yet to see.
};

/// What it waits for, or did last.
struct Wait {
  static constexpr std::uint32_t kNoTimer = UINT32_MAX;

  /// With a deadline: when it passes in this run, whatever becomes of the wall clock.
  SteadyTime due = kNotDue;
  std::uint32_t timer_index = kNoTimer;  ///< Its place in the timer queue.
  std::uint32_t epoch = 0;               ///< A wake that carries an older one is stale.
  bool wake_pending = false;             ///< Something arrived while it ran; it runs again.
  bool timed_out = false;                ///< Its deadline passed; told to the next run.
  bool is_reported = false;              ///< The scheduler has been told whom it waits for.
};

/// Of a member of what is being undone.
struct Turn {
  std::uint32_t step = 0;    ///< Not 0: it is this procedure's turn to undo this step.
  std::uint32_t left = 0;    ///< Its turns that are left, this one included.
  bool leads = false;        ///< It is the head of what is being undone.
  bool ends_domain = false;  ///< Nothing else of the domain is left to undo.
};

/// What the store has of it.
enum class Stored : std::uint8_t {
  kWhole,       ///< Or will have, when its first record is durable.
  kTorn,        ///< Its record names a root that cannot be one; it stands alone.
  kLost,        ///< It stands for a root of which there is no record.
  kUnreadable,  ///< It stands for a root of which there is one that cannot be read.
};

/// Its point of no return, as far as its root counts it: see note_no_return().
enum class NoReturn : std::uint8_t {
  kNone,    ///< Its type has no such step.
  kAhead,   ///< Or nothing comes of it any more.
  kBegun,   ///< Counted in Domain::begun of its root.
  kBeyond,  ///< Counted in Domain::beyond of its root.
};

struct Execution final : SchedulerEntry, Identity {
  // --- Its place in the tree. Set by belong_to(), constant but for the links.
  Execution* root = nullptr;    ///< Itself for a root.
  Execution* head = nullptr;    ///< Of its domain.
  Execution* beside = nullptr;  ///< The nearest that is undone beside siblings, itself included.
  TreeLinks links;

  // --- Durable, as published.
  Record record;                 ///< As of the last durable record, or of a wait that has none.
  std::unique_ptr<Inbox> inbox;  ///< Most have none.
  /// Of a root: there are audit rows. Set under the state mutex; a worker looks when it writes the
  /// end. An order that it does not see is an abort that takes that end back.
  std::atomic<bool> audited{false};

  // --- This run only. The four flags are facts that no state says: whether the current step was
  // started (or may have been, before a crash); whether it waits, or did last, without a record;
  // whether its image has fields that this program does not know.
  StateOf<Phase> phase{Phase::kInserting};
  Stored stored = Stored::kWhole;
  NoReturn no_return_mark = NoReturn::kNone;
  bool started = false;
  bool ahead_of_record = false;
  bool has_unknown_fields = false;
  Wait wait;
  Turn turn;
  std::uint32_t object_failures = 0;  ///< In a row: user code threw while its object was made.
  std::uint32_t unfinished_children = 0;
  /// nullptr: made from arguments and image when it runs. So it is while it waits.
  std::unique_ptr<Procedure> object;
  SlotList slots;
  std::unique_ptr<OutstandingWork> work;  ///< What it offloaded and has not ended; most have none.
  std::unique_ptr<StoppedStep> stopped;   ///< Its newest turn undoes a step that no record names.
  InsertCommit* inserting = nullptr;      ///< Its first record, while that is on the way.
  std::forward_list<Waiter> waiters;      ///< Of a root: who waits for its result, newest first.
  Domain domain;                          ///< Of a head.

  [[nodiscard]] bool is_root() const noexcept { return root == this; }
  [[nodiscard]] Execution* parent_execution() const noexcept {
    return static_cast<Execution*>(parent);
  }
  /// Makes it a root, or a member of the tree of `above`, which spawned it. Its identity
  /// is set.
  void belong_to(Execution* above) noexcept {
    PV2_ASSERT(above != this, "nobody spawns itself");
    PV2_ASSERT(above == nullptr || (above->root != nullptr && above->head != nullptr),
               "who spawns has a place in its tree");
    parent = above;
    root = above != nullptr ? above->root : this;
    head = above == nullptr || reports() ? this : above->head;
    beside = undo_order == UndoOrder::kConcurrent ? this
             : above != nullptr                   ? above->beside
                                                  : nullptr;
  }
  /// The head of its failure domain: itself if it is a root or reports its failure, else the
  /// nearest such ancestor.
  [[nodiscard]] Execution& own_head() noexcept {
    PV2_ASSERT(head != nullptr, "every member is in a domain");
    return *head;
  }
  /// Whether it has ended with its tree, or with a domain whose failure was reported, and only has
  /// not left the table of live executions yet.
  [[nodiscard]] bool leaves() const noexcept {
    return root->domain.state == DomainState::kOver ||
           (head != this && head->domain.state == DomainState::kOver);
  }
  [[nodiscard]] bool is_quarantined() const noexcept {
    return root->domain.state == DomainState::kQuarantined;
  }
  [[nodiscard]] bool is_head() const noexcept { return head == this; }
  /// Of such a head: that of the domain around it; nullptr for a root.
  [[nodiscard]] Execution* outer_domain() const noexcept {
    PV2_ASSERT(is_head(), "another domain is around a head");
    Looks::one();
    return is_root() ? nullptr : &parent_execution()->own_head();
  }
  [[nodiscard]] bool is_undone_with_its_tree() const noexcept {
    // A root has no parent that would compensate for it.
    return is_root() ||
           !(record.state == ProcedureState::kSuccess && type != nullptr && type->final_on_success);
  }
};

/// Whether it stands for a root of which nothing could be read.
[[nodiscard]] inline bool is_stand_in(const Execution& execution) noexcept {
  return execution.stored == Stored::kLost || execution.stored == Stored::kUnreadable;
}

}  // namespace pv2
