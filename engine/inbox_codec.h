// SPDX-License-Identifier: Apache-2.0
//
// The rows of an inbox: one frame each, a protobuf message inside. The byte format is
// docs/store-format.md.

#pragma once

#include <pv2/store/commit_request.h>

#include <string>
#include <string_view>

#include "inbox.h"
#include "pv2/engine/repair.h"

namespace pv2 {

/// Appends the row of `message` to `out`.
void encode_message(const InboxMessage& message, std::string& out);
/// Fails when the row is damaged (kCorruption), or of a kind that this program does not know
/// (kNotSupported).
[[nodiscard]] Result<InboxMessage> decode_message(std::string_view row);

/// An order that was carried out, as a row says it.
struct AuditRow {
  AuditEntry entry;
  /// Of a copy under the member that the order was about: the root, where all of them are. 0: it is
  /// no copy.
  ProcedureId root;
};
/// Adds the row of an order to the batch that carries it out: under `root`, and a copy under the
/// member that it is about, so that whoever knows only that one finds it after the end too.
void insert_audit(const AuditEntry& entry, ProcedureId root, std::uint64_t number, RowBatch& batch);
[[nodiscard]] Result<AuditRow> decode_audit(std::string_view row);

}  // namespace pv2
