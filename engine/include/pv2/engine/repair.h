// SPDX-License-Identifier: Apache-2.0
//
// Repair: what an operator may order where the engine does not go on by itself. Each order is one
// atomic batch together with its audit entry: it has happened, with who and why, or it has not.
// OperatorConsole::preview() says beforehand what an order would leave inconsistent.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace pv2 {

/// The orders. The numbers are persisted.
enum class RepairVerb : std::uint8_t {
  /// A timed wait or a back-off ends now; a parked undo is tried again, with fresh attempts; a step
  /// that has used up its attempts, or failed beyond a point of no return, runs again, and the tree
  /// goes on.
  kRetryNow = 1,
  /// The undo at which a tree is parked counts as done; the rollback goes on with the next one. A
  /// step that has used up its attempts, or failed beyond a point of no return, counts as done; the
  /// next one follows.
  kSkipStep = 2,
  /// A tree that goes forward is undone, as by ProcedureExecutor::abort(), for any member except
  /// those of a child that has failed and whose failure is reported. A tree that is parked beyond a
  /// point of no return is undone as far as it can be; its result says bypassed.
  kFailAndRollBack = 3,
  /// A tree that is parked, quarantined or being undone, or of which a member has used up its
  /// attempts, ends: at once, or when the steps under way have ended. Nothing more of it is undone.
  kBypass = 4,
};

[[nodiscard]] std::string_view to_string(RepairVerb verb) noexcept;

/// Who orders, and why: an order needs both. Kept in the audit; cut at 256 bytes and 1 KiB.
struct RepairNote {
  std::string who{};
  std::string why{};
  /// With kSkipStep of a step that failed: the number of the step that follows; 0: the next row of
  /// the step table. With anything else it is refused.
  std::uint32_t next_step = 0;
};

/// The answer to an order that has a nonce.
struct Ordered {
  bool replayed = false;  ///< It was carried out before: nothing was done now.
};

/// Names the wait for the answer to an order that has a nonce: OperatorConsole::withdraw().
struct OrderTicket {
  Nonce nonce{};
  std::uint64_t number = 0;  ///< 0: nobody waits.
};

/// An order that was carried out.
struct AuditEntry {
  RepairVerb verb = RepairVerb::kRetryNow;
  ProcedureId procedure;   ///< The one that the order was about.
  std::uint32_t step = 0;  ///< The step that was retried or skipped; 0: none.
  std::string who;
  std::string why;
  WallTime at{};
  Nonce nonce{};  ///< OperatorConsole::order_once(); none: order().
  // Both are kept of an order with a nonce, to know it again.
  ProcedureId named{};          ///< The one that the order named.
  std::uint32_t next_step = 0;  ///< RepairNote::next_step.
};

}  // namespace pv2
