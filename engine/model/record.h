// SPDX-License-Identifier: Apache-2.0
//
// Record: what the state row of a procedure says, and nothing that a restart would forget. An
// Execution has one, which changes when a record is published. Transition is the record that
// follows, while it is being made: a worker fills it, the codec writes it as a row, and publishing
// assigns it. What the new record takes over from the one before is decided here, once, for the
// codec and for publishing.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/procedure_state.h>
#include <pv2/base/status.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "model/compact_bytes.h"
#include "model/interrupted_members.h"
#include "model/lazy_vector.h"
#include "model/optional_time.h"
#include "pv2/engine/procedure_info.h"

namespace pv2 {

/// The place of a step in whose middle a member was stopped: newer than any that is durable, so it
/// is undone first. An undo of it that is not over is recorded under it too, so that a restart
/// leaves it in its place.
inline constexpr CommitSequence kUnfinishedStep{UINT64_MAX - 1};

/// A step to be undone if the tree fails. The sequence orders entries over the whole tree.
struct UndoEntry {
  std::uint32_t step = 0;
  CommitSequence sequence;
};

/// A ring of the last entries, made when the first is added. 8: enough to see a retry loop, and 100
/// B in a record.
class History {
 public:
  static constexpr std::size_t kCapacity = 8;

  void add(const HistoryEntry& entry) {
    if (!ring_) ring_ = std::make_unique<Ring>();
    Packed& packed = ring_->entries[ring_->next];
    packed.at = entry.at;
    packed.step = entry.step;
    packed.attempt = entry.attempt & kAttemptMax;
    packed.undo = entry.undo;
    packed.outcome = entry.outcome;
    ring_->next = static_cast<std::uint8_t>((ring_->next + 1) % kCapacity);
    if (ring_->size < kCapacity) ++ring_->size;
    PV2_ASSERT(ring_->size != 0 && ring_->next < kCapacity,
               "a ring has a newest entry, and a place for the next");
  }
  [[nodiscard]] std::size_t size() const noexcept { return ring_ ? ring_->size : 0; }
  /// 0 is the oldest.
  [[nodiscard]] HistoryEntry at(std::size_t index) const noexcept {
    PV2_ASSERT(index < size(), "an entry of a history is asked for that is there");
    const Packed& packed =
        ring_->entries[(ring_->next + kCapacity - ring_->size + index) % kCapacity];
    return {packed.step, packed.attempt, packed.outcome, packed.at, packed.undo};
  }

 private:
  // 134 million attempts are more than a procedure makes in a year of retries.
  static constexpr std::uint32_t kAttemptMax = (1U << 27) - 1;
  struct Packed {
    WallTime at{};
    std::uint32_t step = 0;
    std::uint32_t attempt : 27 = 0;
    bool undo : 1 = false;
    Outcome::Kind outcome : 4 = Outcome::Kind::kNext;
  };
  static_assert(sizeof(Packed) == 16);
  struct Ring {
    std::array<Packed, kCapacity> entries;
    std::uint8_t next = 0;
    std::uint8_t size = 0;
  };

  std::unique_ptr<Ring> ring_;
};

/// What a failed, parked or retrying procedure carries; most have none.
struct Failure {
  Status error;             ///< OK if it did not fail itself.
  CommitSequence sequence;  ///< Of the record that failed first; orders the failures of a tree.
  Status parked;            ///< Why it can neither be finished nor undone.
  Status undo{};            ///< Why the last attempt at the undo that it is at failed.

  /// What an operator has to look at first.
  [[nodiscard]] const Status& shown() const noexcept { return parked.ok() ? error : parked; }
};

/// Where a procedure stands: the part of a record that each record says again.
struct Progress {
  /// The `ended_age` of a record that is not the end of a root.
  static constexpr Duration kNotDated = Duration::min();

  std::uint64_t visits = 0;  ///< Steps completed; names the effects of each visit of a step.
  OptionalTime deadline;     ///< Of a timed wait or a back-off, for the life to come.
  Duration patience{};       ///< What was left of that wait when the record was made. Not negative.
  WallTime updated{};        ///< When the record was made.
  /// At the end of a root: how old the store was then. The root of such a record is live only if an
  /// abort was durable before that end; its next record takes the end back.
  Duration ended_age = kNotDated;
  std::uint32_t step = 0;  ///< The next one to run; 0: none, only the end is left.
  std::uint32_t attempt = 1;
  ProcedureState state = ProcedureState::kInitializing;
  bool no_return = false;    ///< Past its point of no return.
  bool parked = false;       ///< It stands still until an operator acts.
  bool bypassed = false;     ///< The end of a tree by the order of an operator.
  bool sent_back = false;    ///< Its tree is undone in spite of points of no return. Stays so.
  bool reported = false;     ///< The end of a child whose failure is only reported.
  bool unsure = false;       ///< An attempt at this step may have had its effect.
  bool awaits = false;       ///< Its timed wait may also end with something volatile.
  bool holds_locks = false;  ///< A restart takes its locks back before anything runs.
  bool in_results = false;   ///< With `ended_age`: its rows are one row in Space::kResult.
};

/// What happens to the undo list with a record.
enum class UndoChange : std::uint8_t {
  kKeep,
  /// The step that ran can be undone from now on. In rollback: its undo is not over, and a step
  /// that was begun and never recorded is noted, or a restart would forget it.
  kPush,
  kClear,  ///< The point of no return was passed.
  kPop,    ///< Rollback: the step that ran is undone.
};

/// What the order of an operator does to a parked tree when its record is published, beyond what
/// the record says.
enum class OrderEffect : std::uint8_t {
  kNone,
  kForward,  ///< This member goes on; and the tree does, if nobody else in it has failed.
  kBack,     ///< The tree is undone, as far as it can be.
};

/// The `due` of what has no deadline.
inline constexpr SteadyTime kNotDue = SteadyTime::min();

struct Transition;

/// Changed under the state mutex, when a record is published; what a worker runs reads it.
struct Record : Progress {
  LazyVector<UndoEntry> undo;
  History history;
  std::unique_ptr<Failure> failure;
  CompactBytes image;  ///< The state fields, encoded.
  CompactBytes result;
  /// Of the head of what is being undone: which members were in the middle of a step. nullptr: a
  /// restart would guess right.
  std::unique_ptr<InterruptedMembers> interrupted;

  /// What the last run of a step answered, whatever was ordered since. Nothing if none has run, or
  /// orders have pushed it out of the ring.
  [[nodiscard]] std::optional<Outcome::Kind> last_outcome() const noexcept;
  /// Whether its deadline is that of a back-off, not of a wait that its step asked for.
  [[nodiscard]] bool backs_off() const noexcept;

  /// Becomes `next`, which batch `sequence` made durable; `next.error`, `next.image` and the like
  /// are moved away. `ran_step` is the step that ran, or was undone.
  void assign(Transition& next, std::uint32_t ran_step, CommitSequence sequence);
  /// Becomes what `next` says of a wait for which no record was written: whatever only a record
  /// can change stays.
  void assign_wait(const Transition& next) noexcept;
};

/// The record that follows the last one, while it is being made. Owned by whoever makes it.
struct Transition : Progress {
  UndoChange undo = UndoChange::kKeep;
  bool undo_is_unfinished = false;  ///< With kPush: what ran was the undo of that step.
  bool audited = false;             ///< At the end of a root: there are audit rows.
  bool new_image = false;           ///< `image` replaces the durable one.
  std::optional<HistoryEntry> history;
  /// Of the head of what is about to be undone: replaces what its record says of its members.
  std::unique_ptr<InterruptedMembers> interrupted{};
  Status error;         ///< Not OK: becomes the failure that the record carries.
  Status undo_error{};  ///< Not OK: why this attempt to undo failed, and is made again.
  std::string image;
  std::string result;  ///< The whole of it: a record without one takes it back.

  // What follows when it is published, and is not recorded.
  OrderEffect order = OrderEffect::kNone;
  bool ends_waits = true;    ///< What was awaited is forgotten: the next run starts from nothing.
  bool requeue = false;      ///< Runs again at once (again()).
  SteadyTime due = kNotDue;  ///< With a deadline: when it passes, by the clock of this run.
  Status retried;            ///< Not OK: why an attempt failed that the host is told of.

  /// Begins the record that follows `last`: nothing has changed but that it waits for nothing.
  void begin(const Record& last, WallTime now) noexcept;
  void stop_waiting() noexcept {
    deadline.reset();
    patience = Duration::zero();
    awaits = false;
  }
};

/// Views into `last` and `next`: the failure that the record after `last` carries.
struct FailureAfter {
  const Status& error;
  const Status& parked;
  const Status& undo;
  /// Of the record that failed first; nullopt: that is `next` itself.
  std::optional<CommitSequence> sequence;

  [[nodiscard]] bool is_none() const noexcept { return error.ok() && parked.ok() && undo.ok(); }
};
[[nodiscard]] FailureAfter failure_after(const Record& last, const Transition& next) noexcept;
/// Whether it may carry one: false for most records, which is all that most steps pay.
[[nodiscard]] inline bool may_carry_failure(const Record& last, const Transition& next) noexcept {
  return last.failure != nullptr || !next.error.ok() || !next.undo_error.ok();
}

/// What becomes of the undo list of `last`: its first `kept` entries stay, and `ran_step` is added
/// or not. A repeated step keeps its first place: what it spawned since is undone before it.
struct UndoAfter {
  std::size_t kept = 0;
  bool adds = false;
};
[[nodiscard]] UndoAfter undo_after(const Record& last, const Transition& next,
                                   std::uint32_t ran_step) noexcept;

}  // namespace pv2
