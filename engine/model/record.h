// SPDX-License-Identifier: Apache-2.0
//
// Record: what the state row of a procedure says, and nothing that a restart would forget. An
// Execution has one. Transition is the next record while it is being made: a worker fills it, the
// codec writes it as a row, and publishing assigns it. What the next record takes over from the
// last one is decided here, once, for the codec and for publishing.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/procedure_state.h>
#include <pv2/base/status.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "model/compact_bytes.h"
#include "model/interrupted_members.h"
#include "model/lazy_vector.h"
#include "model/on_demand.h"
#include "model/optional_time.h"
#include "pv2/engine/procedure_info.h"

namespace pv2 {

/// The sequence of an interrupted step. It is newer than any sequence of a batch, so that step is
/// undone first. An undo of that step that is not over is recorded with this sequence too, so that
/// the step keeps its place after a restart.
inline constexpr CommitSequence kUnfinishedStep{UINT64_MAX - 1};

/// A step to be undone if the tree fails. The sequence orders entries over the whole tree.
struct UndoEntry {
  std::uint32_t step = 0;
  CommitSequence sequence;
};

/// The last entries, the oldest first. 8: enough to see a retry loop, and about 100 bytes in a
/// record.
class History {
 public:
  static constexpr std::size_t kCapacity = 8;

  void add(const HistoryEntry& entry) {
    const std::size_t size = entries_.size();
    if (size == 0) entries_.reserve(kFew);
    if (size == kFew) entries_.reserve(kCapacity);
    if (size == kCapacity) {
      std::copy(entries_.begin() + 1, entries_.end(), entries_.begin());
      entries_.pop_back();
    }
    Packed packed;
    packed.at = entry.at;
    packed.step = entry.step;
    packed.attempt = entry.attempt & kAttemptMax;
    packed.undo = entry.undo;
    packed.outcome = entry.outcome;
    entries_.push_back(packed);
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// 0 is the oldest.
  [[nodiscard]] HistoryEntry at(std::size_t index) const noexcept {
    const Packed& packed = entries_[index];
    return {packed.step, packed.attempt, packed.outcome, packed.at, packed.undo};
  }

 private:
  // Many procedures wait in one of their first steps.
  static constexpr std::size_t kFew = 2;
  // A year of retries makes fewer than 134 million attempts.
  static constexpr std::uint32_t kAttemptMax = (1U << 27) - 1;
  struct Packed {
    WallTime at{};
    std::uint32_t step = 0;
    std::uint32_t attempt : 27 = 0;
    bool undo : 1 = false;
    Outcome::Kind outcome : 4 = Outcome::Kind::kNext;
  };
  static_assert(sizeof(Packed) == 16);

  LazyVector<Packed> entries_;
};

/// What a failed, parked or retrying procedure carries; most have none.
struct Failure {
  Status error;             ///< OK if the procedure did not fail itself.
  CommitSequence sequence;  ///< Of its first failed record; orders the failures of a tree.
  Status parked;            ///< Why it is parked.
  Status undo{};            ///< Why the last attempt at its current undo failed.

  /// The error that an operator needs to see first.
  [[nodiscard]] const Status& shown() const noexcept { return parked.ok() ? error : parked; }
};

/// Where a procedure stands. Every record says all of this in full.
struct Progress {
  /// The `ended_age` of a record that is not the end of a root.
  static constexpr Duration kNotDated = Duration::min();

  std::uint64_t visits = 0;  ///< Steps completed. Part of the effect key of a visit.
  OptionalTime deadline;     ///< Of a timed wait or a back-off, for the next run.
  Duration patience{};       ///< What was left of the wait when the record was made. Not negative.
  WallTime updated{};        ///< When the record was made.
  /// At the end of a root: how old the store was then. A root with such a record is live only if an
  /// abort was durable before that end. Then its next record takes the end back.
  Duration ended_age = kNotDated;
  std::uint32_t step = 0;  ///< The next step to run; 0: none, only the end is left.
  std::uint32_t attempt = 1;
  ProcedureState state = ProcedureState::kInitializing;
  bool no_return : 1 = false;  ///< Past its point of no return.
  bool parked : 1 = false;     ///< It waits for an operator.
  bool bypassed : 1 = false;   ///< An operator ended it as it stood.
  bool sent_back : 1 = false;  ///< Its tree is undone in spite of points of no return. Never reset.
  bool reported : 1 = false;  ///< It is a child that has ended, and whose failure is only reported.
  bool unsure : 1 = false;    ///< An attempt at this step may have had its effect.
  bool awaits : 1 = false;    ///< Something volatile that it awaits may end its timed wait.
  bool holds_locks : 1 = false;  ///< After a restart it gets its locks back before any step runs.
  /// With `ended_age`: header and state are one row in Space::kResult.
  bool in_results : 1 = false;
};

/// What a record does to the undo list.
enum class UndoChange : std::uint8_t {
  kKeep,
  /// The step that ran can be undone from now on. In rollback: the undo of an interrupted step is
  /// not over; the entry keeps a restart from forgetting that step.
  kPush,
  kClear,  ///< The point of no return was passed.
  kPop,    ///< Rollback: the step that ran is undone.
};

/// What the publication of an operator's order does to a parked tree, in addition to what the
/// record says.
enum class OrderEffect : std::uint8_t {
  kNone,
  kForward,  ///< The member goes on. So does the tree, if no other member has failed.
  kBack,     ///< The tree is undone as far as it can be.
};

/// The `due` of a wait without a deadline.
inline constexpr SteadyTime kNotDue = SteadyTime::min();

/// What changes a state.
enum class MovedBy : std::uint8_t { kStep, kBypass };

struct Transition;

/// Once the procedure is durable, it changes only under the state mutex or the share of the worker
/// that has the procedure in flight: to what a published record says, to what a restart would
/// conclude from the records, or to a wait that needs no record. That worker reads it without a
/// lock.
struct Record : Progress {
  LazyVector<UndoEntry> undo;
  History history;
  CompactBytes image;  ///< The state fields, encoded.

  /// nullptr: it carries none.
  [[nodiscard]] const Failure* failure() const noexcept {
    return seldom_.is_made() ? seldom_->failure.get() : nullptr;
  }
  void set_failure(std::unique_ptr<Failure> failure) {
    if (failure || seldom_.is_made()) seldom_.edit().failure = std::move(failure);
  }
  [[nodiscard]] std::unique_ptr<Failure> take_failure() {
    return seldom_.is_made() ? std::move(seldom_.edit().failure) : nullptr;
  }
  [[nodiscard]] std::string_view result() const noexcept {
    return seldom_.is_made() ? seldom_->result.view() : std::string_view();
  }
  void set_result(std::string_view result) {
    if (!result.empty() || seldom_.is_made()) seldom_.edit().result = result;
  }
  /// In the head of a domain that is being undone: which members were in the middle of a step.
  /// nullptr: a restart would guess right.
  [[nodiscard]] const InterruptedMembers* interrupted() const noexcept {
    return seldom_.is_made() ? seldom_->interrupted.get() : nullptr;
  }
  void set_interrupted(std::unique_ptr<InterruptedMembers> interrupted) {
    seldom_.edit().interrupted = std::move(interrupted);
  }

  /// The outcome of the last run of a step; orders are skipped. None if no step has run, or if
  /// orders have pushed its entry out.
  [[nodiscard]] std::optional<Outcome::Kind> last_outcome() const noexcept;
  /// Whether its deadline, if it has one, ends a back-off and not a wait that its step asked for.
  [[nodiscard]] bool backs_off() const noexcept;

  /// Whether the table of states allows the change, or an order that ends a procedure as it stands.
  [[nodiscard]] bool may_become(ProcedureState next, MovedBy by) const noexcept;
  /// A change of state that no record says: after a restart it follows from the other records.
  void move_to(ProcedureState next, MovedBy by = MovedBy::kStep) {
    PV2_ASSERT(may_become(next, by), "a state in memory moves along the table");
    state = next;
  }
  /// Becomes `next`, which batch `sequence` made durable. Takes the image and the interrupted
  /// members of `next`, and leaves it the old image, whose memory the next step can use.
  /// `ran_step` is the step that ran, or was undone.
  void assign(Transition& next, std::uint32_t ran_step, CommitSequence sequence);
  /// Becomes `next`, which begins a wait without a record. The members that only a record changes
  /// keep their values.
  void assign_wait(const Transition& next) noexcept;

 private:
  struct Seldom {
    std::unique_ptr<Failure> failure;
    CompactBytes result;
    std::unique_ptr<InterruptedMembers> interrupted;
  };
  OnDemand<Seldom> seldom_;
};

/// The next record while it is being made. Owned by the thread that makes it.
struct Transition : Progress {
  UndoChange undo = UndoChange::kKeep;
  bool undo_is_unfinished = false;  ///< With kPush: the undo of that step ran.
  bool audited = false;             ///< At the end of a root: there are audit rows.
  bool new_image = false;           ///< `image` replaces the durable one.
  // Consequences of its publication. These are not recorded.
  OrderEffect order = OrderEffect::kNone;
  bool ends_waits = true;    ///< Awaited values are forgotten; the next run asks again.
  bool requeue = false;      ///< The procedure runs again at once (again()).
  SteadyTime due = kNotDue;  ///< With a deadline: when it passes, by the monotonic clock.
  /// Of a back-off that the step did not ask for: when the wait passes, or has passed, that its
  /// step did ask for. kNotDue: there is none.
  SteadyTime interrupted_due = kNotDue;

  std::optional<HistoryEntry> history;
  CompactBytes image;  ///< Means nothing without `new_image`.

  /// Whether error() or undo_error() says why something failed.
  [[nodiscard]] bool has_error() const noexcept {
    return seldom_.is_made() && !(seldom_->error.ok() && seldom_->undo_error.ok());
  }
  /// Not OK: becomes the failure that the record carries.
  [[nodiscard]] const Status& error() const noexcept { return seldom_->error; }
  void set_error(Status error) {
    if (!error.ok() || seldom_.is_made()) seldom_.edit().error = std::move(error);
  }
  /// Not OK: why this attempt to undo failed. Another one follows.
  [[nodiscard]] const Status& undo_error() const noexcept { return seldom_->undo_error; }
  void set_undo_error(Status error) {
    if (!error.ok() || seldom_.is_made()) seldom_.edit().undo_error = std::move(error);
  }
  /// Always the whole result. Empty: an earlier result is dropped.
  [[nodiscard]] std::string_view result() const noexcept {
    return seldom_.is_made() ? std::string_view(seldom_->result) : std::string_view();
  }
  void set_result(std::string result) {
    if (!result.empty() || seldom_.is_made()) seldom_.edit().result = std::move(result);
  }
  /// In the head of a domain whose rollback is being planned: replaces Record::interrupted().
  /// nullptr: that stays.
  [[nodiscard]] const InterruptedMembers* interrupted() const noexcept {
    return seldom_.is_made() ? seldom_->interrupted.get() : nullptr;
  }
  void set_interrupted(std::unique_ptr<InterruptedMembers> interrupted) {
    seldom_.edit().interrupted = std::move(interrupted);
  }
  [[nodiscard]] std::unique_ptr<InterruptedMembers> take_interrupted() noexcept {
    return seldom_.is_made() ? std::move(seldom_.edit().interrupted) : nullptr;
  }
  /// Not OK: why the attempt failed; listeners are told. Not recorded.
  [[nodiscard]] bool is_retried() const noexcept {
    return seldom_.is_made() && !seldom_->retried.ok();
  }
  [[nodiscard]] const Status& retried() const noexcept { return seldom_->retried; }
  void set_retried(Status why) {
    if (!why.ok() || seldom_.is_made()) seldom_.edit().retried = std::move(why);
  }

  /// Begins the record after `last`: like `last`, but without a wait and without the date of an
  /// end.
  void begin(const Record& last, WallTime now) noexcept;
  /// Of a record that does not end a root.
  void clear_end() noexcept {
    ended_age = kNotDated;
    audited = false;
    in_results = false;
  }
  void stop_waiting() noexcept {
    deadline.reset();
    patience = Duration::zero();
    awaits = false;
  }
  /// Makes this transition equal to a new one. `image` keeps its memory, for the next image, if it
  /// has at most kImageKept bytes; with `new_image` false nobody reads it.
  void reset() noexcept;
  static constexpr std::size_t kImageKept = 4096;

 private:
  struct Seldom {
    Status error;
    Status undo_error;
    Status retried;
    std::string result;
    std::unique_ptr<InterruptedMembers> interrupted;
  };
  OnDemand<Seldom> seldom_;
};

/// Views into `last` and `next`: the failure that the record after `last` carries.
struct FailureAfter {
  const Status& error;
  const Status& parked;
  const Status& undo;
  /// The sequence of the first failed record; nullopt: `next` is that record.
  std::optional<CommitSequence> sequence;

  [[nodiscard]] bool is_none() const noexcept { return error.ok() && parked.ok() && undo.ok(); }
};
[[nodiscard]] FailureAfter failure_after(const Record& last, const Transition& next) noexcept;
/// Whether that record may carry a failure. Cheap, and false for most records.
[[nodiscard]] inline bool may_carry_failure(const Record& last, const Transition& next) noexcept {
  return last.failure() != nullptr || next.has_error();
}

/// The undo list after `last`: its first `kept` entries stay, and an entry for `ran_step` is added
/// if `adds`. A repeated step keeps its first entry, so the children that it spawned later are
/// undone before it.
struct UndoAfter {
  std::size_t kept = 0;
  bool adds = false;
};
[[nodiscard]] inline UndoAfter undo_after(const Record& last, const Transition& next,
                                          std::uint32_t ran_step) noexcept {
  const std::size_t size = last.undo.size();
  const bool repeated = size != 0 && last.undo.back().step == ran_step;
  switch (next.undo) {
    case UndoChange::kKeep:
      return {size, false};
    case UndoChange::kPush:
      return {size, !repeated};
    case UndoChange::kClear:
      return {0, false};
    case UndoChange::kPop:
      return {repeated ? size - 1 : size, false};
  }
  return {size, false};
}

}  // namespace pv2
