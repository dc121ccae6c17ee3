// SPDX-License-Identifier: Apache-2.0
//
// AuditRow: the row of an order that was carried out: one frame, a protobuf message inside. The
// byte format is in docs/store-format.md. Rows of orders stay until the result of their root is
// acknowledged.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/store/commit_request.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pv2/engine/repair.h"

namespace pv2 {

/// The row of an order that was carried out.
struct AuditRow {
  AuditEntry entry;
  /// In a copy under the member that the order was about: the root under which the original lies.
  /// 0: this row is no copy.
  ProcedureId root;
};
/// Adds the row of an order to the batch that carries the order out: under `root`, and a copy under
/// the member that the order is about. So the member's id finds the order even after the member has
/// ended. If an order with a nonce named a third procedure, a row without words is added under that
/// one, which says where the entry is.
void insert_audit(const AuditEntry& entry, ProcedureId root, std::uint64_t number, RowBatch& batch);
/// kCorruption when the row is damaged, or has an order that this program does not know.
[[nodiscard]] Result<AuditRow> decode_audit(std::string_view row);

/// The most that the third row of an order takes: a frame with four numbers.
inline constexpr std::size_t kAuditPointerBytes = 60;

/// Where the rows of an order lie, also of one that this program does not know.
struct AuditPlace {
  ProcedureId procedure;  ///< The member that the order was about.
  ProcedureId root;       ///< As in AuditRow.
  ProcedureId named;      ///< The member that the order named; 0: its row does not say.
};
/// kCorruption when the row is damaged.
[[nodiscard]] Result<AuditPlace> decode_audit_place(std::string_view row);

}  // namespace pv2
