// SPDX-License-Identifier: Apache-2.0
//
// OperatorConsole: what an operator may do where the engine does not go on by itself: give an order
// about a procedure, ask beforehand what it would do, read what was ordered, and limit how much
// runs at once. docs/operations.md says when to use which.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/resource.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/engine/procedure_result.h"
#include "pv2/engine/repair.h"

namespace pv2 {

class Engine;

/// Takes the answer to an order that has a nonce.
using OrderedCallback = std::function<void(const Result<Ordered>&)>;

/// What ProcedureExecutor::operate() returns. Copies are equivalent; each is valid as long as the
/// executor. Thread-safe.
class OperatorConsole {
 public:
  /// Carries out the order of an operator: see RepairVerb. When this returns OK the order is on
  /// stable storage, together with its audit entry, and has taken effect; a crash leaves all of it
  /// or nothing.
  ///
  /// kBypass waits for the steps of the tree that are under way, and no other step begins
  /// meanwhile. So it may take as long as they do. Until they have ended, nothing of the order is
  /// durable.
  ///
  /// kUnavailable: nothing was changed, try again. A step that the order concerns is running (not
  /// for kBypass); work that the step has offloaded runs (for kSkipStep); another order about the
  /// same procedures is on its way, or an abort (for kFailAndRollBack); a bypass of what the order
  /// concerns waits, or (for kBypass) a bypass of any part of its tree, or 64 bypasses wait.
  /// kStopping: the executor stopped while the order waited. kFailedPrecondition: the procedure is
  /// not in the condition that the order is for; the message says why. kInvalidArgument: there is
  /// no such order; its note lacks who or why; or its note names a next step where none is taken,
  /// or one that the type does not have. kNotFound, kExpired: as ProcedureExecutor::abort(). Not on
  /// a thread of this executor (kFailedPrecondition).
  Status order(ProcedureId id, RepairVerb verb, RepairNote note) const;
  /// Like order() above, without blocking: `done` is called once, on a pool thread. A caller that
  /// does not want the answer gives an empty `done`.
  void order(ProcedureId id, RepairVerb verb, RepairNote note, StatusCallback done) const;

  /// Like order(), once for each nonce. `nonce` names the order; whoever has no answer gives the
  /// same order again under it, in this run or a later one. It is then carried out if it was not,
  /// and is not carried out twice: Ordered::replayed says that it had been, and a copy of an order
  /// that is on its way gets the answer of that one. An order is the same if it names the same
  /// procedure, verb and next step, whoever gives it and why.
  ///
  /// The nonce is kept in the audit of the tree, and as long as that. kKeyReused: it was used for
  /// another order, in this tree or on its way in another one. kExpired: the tree and its audit are
  /// forgotten, so nothing tells whether the order was carried out. kUnavailable: also if 64 copies
  /// wait for the answer. kInvalidArgument: also without a nonce. kFailedPrecondition: also if the
  /// store keeps no records. Reads the store if there were orders about the tree.
  Result<Ordered> order_once(const Nonce& nonce, ProcedureId id, RepairVerb verb,
                             RepairNote note) const;
  /// The ticket is for withdraw(); whoever does not withdraw needs none.
  OrderTicket order_once(const Nonce& nonce, ProcedureId id, RepairVerb verb, RepairNote note,
                         OrderedCallback done) const;
  /// Gives up the wait for the answer to an order, or to a copy of it; the order itself goes on.
  /// True: its callback is not called, and makes room for another copy. False: it has been called,
  /// or soon is.
  bool withdraw(const OrderTicket& ticket) const;
  /// Whether order_once() can be given: the store keeps records.
  [[nodiscard]] bool keeps_nonces() const noexcept;

  /// Ends a timed wait or a back-off of `id` now. If `id`, or the tree of root `id`, is parked at
  /// an undo, at a step that has used up its attempts, or at one that failed beyond a point of no
  /// return, tries that again, with fresh attempts. A tree goes on when all that failed in it were
  /// retried or skipped.
  Status retry_now(ProcedureId id, RepairNote note) const {
    return order(id, RepairVerb::kRetryNow, std::move(note));
  }
  /// The undo or the step at which the tree is parked counts as done. A step is followed by the
  /// next row of the step table, or by the step that the note names. kFailedPrecondition: also if
  /// it is a step that must run (StepRow::must_run()), or if one lies before the named step.
  Status skip_step(ProcedureId id, RepairNote note) const {
    return order(id, RepairVerb::kSkipStep, std::move(note));
  }
  /// The tree of `id`, root or child, is undone: ProcedureExecutor::abort() of its root. A tree
  /// that is parked beyond a point of no return is undone as far as it can be.
  Status fail_and_roll_back(ProcedureId id, RepairNote note) const {
    return order(id, RepairVerb::kFailAndRollBack, std::move(note));
  }
  /// Ends the tree of `id` if it is parked, quarantined or being undone, or if a member of it has
  /// used up its attempts: nothing more of it is undone, its locks are released, its result says
  /// bypassed. Ask preview() what that leaves inconsistent.
  Status bypass(ProcedureId id, RepairNote note) const {
    return order(id, RepairVerb::kBypass, std::move(note));
  }
  /// What an order would do and leave inconsistent, in words, one line each; or why it would be
  /// refused. Changes nothing.
  [[nodiscard]] Result<std::vector<std::string>> preview(ProcedureId id, RepairVerb verb) const;
  /// The orders carried out on the tree of `id`, oldest first, until its result is acknowledged; an
  /// abort() is listed as kFailAndRollBack. If the tree has ended, `id` is the root, or a child
  /// that an order named; kExpired: `id` is another child, or the tree is forgotten. kNotFound:
  /// there never was one. Reads the store.
  [[nodiscard]] Result<std::vector<AuditEntry>> audit(ProcedureId id) const;

  /// From now on at most `limit` procedures hold `key` at once, in whatever mode; a tree counts
  /// once. nullopt ends the limit. Procedures that hold the key already go on. Durable when this
  /// returns OK, and in force in every later run. kInvalidArgument: the key has a name or class
  /// that no key has (limits.h). kResourceExhausted: limits::kLimitedKeys have a limit already. Not
  /// on a thread of this executor (kFailedPrecondition).
  Status set_limit(const ResourceKey& key, std::optional<std::uint32_t> limit) const;
  /// Like set_limit(), for procedures of one type. Those count that were submitted or spawned while
  /// the type had a limit. kInvalidArgument: the type is not registered; its limit can be ended all
  /// the same.
  Status set_type_limit(std::string_view type, std::optional<std::uint32_t> limit) const;

 private:
  friend class ProcedureExecutor;
  explicit OperatorConsole(Engine& engine) noexcept : engine_(&engine) {}

  Engine* engine_;
};

}  // namespace pv2
