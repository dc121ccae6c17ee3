// SPDX-License-Identifier: Apache-2.0
//
// Domain: what the members of a failure domain have in common. A domain is a root, or a child whose
// failure is only reported, with all its descendants: what fails together and is undone together.
// Domains lie in each other; the widest one that has failed is undone, with those within it.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <map>
#include <memory>

#include "model/rollback_plan.h"
#include "model/state_of.h"

namespace pv2 {

struct Execution;
struct TreeWork;
struct TreeWorks;

using MembersById = std::map<ProcedureId, Execution*>;

/// Where a failure domain stands. Not persisted: a restart finds it from the records.
enum class DomainState : std::uint8_t {
  kForward,       ///< No record of it says that it failed.
  kStopped,       ///< No record says so, but it was stopped so that an operator's order can end it.
  kFailed,        ///< It failed (published). Its members are stopped, then its rollback is planned.
  kRollingBack,   ///< The rollback is planned; turns of it are undone.
  kParkedInUndo,  ///< An undo waits for an operator. Turns that do not wait for that one go on.
  kParkedBeyond,  ///< It failed beyond a point of no return, and waits for an operator.
  kQuarantined,   ///< Of a root: this program does not understand the tree. Nothing of it runs.
  kOver,          ///< Its end is durable: its members leave.
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

/// Whether nothing of it goes forward, and it has not ended.
[[nodiscard]] constexpr bool is_stopped(DomainState state) noexcept {
  return state != DomainState::kForward && state != DomainState::kOver;
}
/// Whether it waits for an operator.
[[nodiscard]] constexpr bool is_parked(DomainState state) noexcept {
  return state == DomainState::kParkedInUndo || state == DomainState::kParkedBeyond ||
         state == DomainState::kQuarantined;
}
/// Whether its rollback was planned, or found to be impossible.
[[nodiscard]] constexpr bool is_undone(DomainState state) noexcept {
  return state == DomainState::kRollingBack || state == DomainState::kParkedInUndo ||
         state == DomainState::kParkedBeyond;
}

/// How far an order is that ends a domain (bypass).
enum class EndingOrder : std::uint8_t {
  kNone,
  kWaits,    ///< A WaitingOrder is to end it: nothing of it begins.
  kMayGoOn,  ///< Something is over for which that may have waited.
  kDurable,  ///< Its record is durable, and may still wait to be published.
};

/// Used in heads only, under the state mutex.
struct Domain {
  [[nodiscard]] bool is_stopped() const noexcept { return pv2::is_stopped(state); }
  [[nodiscard]] bool is_parked() const noexcept { return pv2::is_parked(state); }
  [[nodiscard]] bool is_undone() const noexcept { return pv2::is_undone(state); }
  [[nodiscard]] bool is_over() const noexcept { return state == DomainState::kOver; }
  /// Whether an order is to end it: nothing of it begins any more.
  [[nodiscard]] bool makes_way() const noexcept { return ending != EndingOrder::kNone; }

  StateOf<DomainState> state{DomainState::kForward};
  EndingOrder ending = EndingOrder::kNone;
  // Decisions whose record is on the way, whatever the state is meanwhile.
  bool abort_accepted : 1 = false;  ///< Of a root: no point of no return is begun.
  bool given_up : 1 = false;        ///< To end a deadlock.
  /// Of its own members, not those of domains within it: taken by a worker, and their record is not
  /// published yet.
  std::uint32_t in_flight = 0;
  /// Likewise with the domains within it, while it is the widest one that has failed; else 0.
  std::uint32_t in_flight_inside = 0;
  std::unique_ptr<RollbackPlan> rollback;  ///< While it is being undone, parked or not.
  Status cause;              ///< Of the failure that was durable first: the result of the root.
  TreeWork* work = nullptr;  ///< What is being done to all of its members, a section at a time.
  /// The head of the widest domain around this one, itself included, that is stopped; or nullptr.
  Execution* failing = nullptr;
  /// By what the records say of it and of the domains around it, after a restart: the first failure
  /// or abort.
  CommitSequence first_failure{UINT64_MAX};
  /// Likewise of itself and of the root: a member that was recorded later has not begun another
  /// step.
  CommitSequence stopped_since{UINT64_MAX};
  /// In an undo that is planned: members that are parked in theirs.
  std::uint32_t parked_undos = 0;
  // Of a root:
  TreeWorks* works = nullptr;  ///< Under way, or waiting to be, on all domains of its tree.
  // Of a root, so that an order does not look through all of its members:
  std::uint32_t beyond = 0;  ///< Members that are past their point of no return.
  /// Members that have begun to pass it, in no domain of which a record says that it failed.
  std::uint32_t begun = 0;
  /// By id, members that are parked, and heads of domains that are. nullptr: there was none.
  std::unique_ptr<MembersById> standing;
  std::unique_ptr<MembersById> at_work;  ///< Members with offloaded work that has not ended.
  std::uint32_t heads_that_say_it = 0;   ///< Heads whose record has `interrupted`, itself included.
};

}  // namespace pv2
