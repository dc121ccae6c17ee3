// SPDX-License-Identifier: Apache-2.0
//
// Domain: what the members of a failure domain have in common. The members of a domain fail
// together and are undone together: its head, which is a root or a child whose failure is only
// reported, and the descendants of the head. Domains are nested. The widest domain that has failed
// is undone together with those within it.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <map>
#include <memory>

#include "model/on_demand.h"
#include "model/state_of.h"

namespace pv2 {

class RollbackPlan;
struct Execution;
struct TreeWork;
struct TreeWorks;

using MembersById = std::map<ProcedureId, Execution*>;

/// The state of a failure domain. Not persisted: recovery decides it from the records.
enum class DomainState : std::uint8_t {
  kForward,  ///< No record says that it failed.
  kStopped,  ///< Like kForward, but stopped, so that an operator's order can end it.
  kFailed,   ///< Its failure is published. Its members are stopped, then its rollback is planned.
  kRollingBack,   ///< Its rollback is planned, and turns are undone.
  kParkedInUndo,  ///< An undo waits for an operator. Turns that do not wait for that undo go on.
  kParkedBeyond,  ///< It failed beyond a point of no return, and waits for an operator.
  kQuarantined,   ///< Of a root: this program cannot read the tree. No member of it runs.
  kOver,          ///< Its end is durable. Its members leave the table of live executions.
};

/// The table of moves:
///
///     from          | to
///     --------------|---------------------------------------------------------------------------
///     kForward      | kStopped (bypass), kFailed, kQuarantined, kOver (its root has succeeded)
///     kStopped      | kFailed (after all), kForward (a wider domain failed), kQuarantined, kOver
///     kFailed       | kRollingBack or kParkedInUndo (planned), kParkedBeyond, kForward (a wider
///                   | domain failed, or it was repaired), kQuarantined, kOver
///     kRollingBack  | kParkedInUndo, kForward (a wider domain failed), kQuarantined, kOver
///     kParkedInUndo | kRollingBack (repaired), kForward, kQuarantined, kOver
///     kParkedBeyond | kFailed (sent back), kForward (repaired), kQuarantined, kOver
///     kQuarantined  | kOver (bypassed)
///     kOver         | nothing
[[nodiscard]] constexpr bool is_legal_move(DomainState from, DomainState to) noexcept {
  using enum DomainState;
  const bool leaves = to == kQuarantined || to == kOver;
  switch (from) {
    case kForward:
      return leaves || to == kStopped || to == kFailed;
    case kStopped:
      return leaves || to == kFailed || to == kForward;
    case kFailed:
      return leaves || to == kRollingBack || to == kParkedInUndo || to == kParkedBeyond ||
             to == kForward;
    case kRollingBack:
      return leaves || to == kParkedInUndo || to == kForward;
    case kParkedInUndo:
      return leaves || to == kRollingBack || to == kForward;
    case kParkedBeyond:
      return leaves || to == kFailed || to == kForward;
    case kQuarantined:
      return to == kOver;
    case kOver:
      return false;
  }
  return false;
}

/// Whether no member of the domain goes forward, and the domain has not ended.
[[nodiscard]] constexpr bool is_stopped(DomainState state) noexcept {
  return state != DomainState::kForward && state != DomainState::kOver;
}
/// Whether the domain waits for an operator.
[[nodiscard]] constexpr bool is_parked(DomainState state) noexcept {
  return state == DomainState::kParkedInUndo || state == DomainState::kParkedBeyond ||
         state == DomainState::kQuarantined;
}
/// Whether the rollback of the domain was planned, or found to be impossible.
[[nodiscard]] constexpr bool is_undone(DomainState state) noexcept {
  return state == DomainState::kRollingBack || state == DomainState::kParkedInUndo ||
         state == DomainState::kParkedBeyond;
}

/// How far an order to end a domain (bypass) has come.
enum class EndingOrder : std::uint8_t {
  kNone,
  kWaits,    ///< A WaitingOrder is to end the domain: no step or undo of it begins.
  kMayGoOn,  ///< A step or an undo that the order may have waited for is over.
  kDurable,  ///< The record of the order is durable, but may not be published yet.
};

/// What only few domains have: those that stop, fail or are undone, whose members are parked,
/// offload work or pass a point of no return, or that end with many members.
struct RareOfDomain {
  RareOfDomain();
  ~RareOfDomain();

  Execution* failing = nullptr;  ///< See Domain::failing().
  /// How many members are in flight, those of domains within this one included, while it is the
  /// widest domain that has failed; otherwise 0.
  std::uint32_t in_flight_inside = 0;
  /// How many members are parked in their undo, once the rollback is planned.
  std::uint32_t parked_undos = 0;
  std::unique_ptr<RollbackPlan> rollback;  ///< While the domain is being undone, parked or not.
  Status cause;  ///< The failure that was durable first; it becomes the result of the root.
  TreeWork* work = nullptr;  ///< The work on all of its members that is under way.
  /// After a restart: the first failure or abort that a record of this domain, or of a domain
  /// around it, tells of.
  CommitSequence first_failure{UINT64_MAX};
  /// After a restart: the first failure or abort of this domain or of the root. A member whose
  /// record is newer has not begun another step.
  CommitSequence stopped_since{UINT64_MAX};
  // Of a root:
  TreeWorks* works = nullptr;  ///< See Domain::works().
  // Of a root, so that an order need not look at every member:
  /// Members that are past their point of no return. Those below a member that is final on success
  /// do not count from its success on, whether they have left or not.
  std::uint32_t beyond = 0;
  /// Members that have begun to pass their point of no return. In a domain whose failure is
  /// recorded they count until their step has ended.
  std::uint32_t begun = 0;
  /// By id: parked members, and heads of parked domains. nullptr: there was none.
  std::unique_ptr<MembersById> standing;
  std::unique_ptr<MembersById> at_work;  ///< Members with offloaded work that has not ended.
  std::uint32_t heads_that_say_it = 0;   ///< Heads whose record has `interrupted`, root included.
  bool had_victim = false;  ///< A domain of the tree was to fail once, to end a deadlock.
};

/// Every Execution has one; that of a head is used. Guarded by the state mutex.
struct Domain {
  [[nodiscard]] bool is_stopped() const noexcept { return pv2::is_stopped(state); }
  [[nodiscard]] bool is_parked() const noexcept { return pv2::is_parked(state); }
  [[nodiscard]] bool is_undone() const noexcept { return pv2::is_undone(state); }
  [[nodiscard]] bool is_over() const noexcept { return state == DomainState::kOver; }
  /// The head of the widest stopped domain among this one and those around it; or nullptr.
  [[nodiscard]] Execution* failing() const noexcept {
    return rare.is_made() ? rare->failing : nullptr;
  }
  /// Of a root: the works on its tree, under way or queued; nullptr: there is none.
  [[nodiscard]] TreeWorks* works() const noexcept { return rare.is_made() ? rare->works : nullptr; }
  /// Whether an order is to end the domain: no step or undo of it begins any more.
  [[nodiscard]] bool makes_way() const noexcept { return ending != EndingOrder::kNone; }

  StateOf<DomainState> state{DomainState::kForward};
  EndingOrder ending = EndingOrder::kNone;
  // Decisions whose record is on the way. The state does not show them yet.
  bool abort_accepted : 1 = false;   ///< Of a root: no member begins its point of no return.
  bool deadlock_victim : 1 = false;  ///< The domain is to fail, to end a deadlock.
  /// How many members are in flight: a worker has taken them and their record is not published yet,
  /// or they have offloaded work outstanding. Members of domains within this one are not counted.
  std::uint32_t in_flight = 0;
  OnDemand<RareOfDomain> rare;
};

}  // namespace pv2
