// SPDX-License-Identifier: Apache-2.0
//
// The rows of an inbox: one frame each, a protobuf message inside. The byte format is
// docs/store-format.md.

#pragma once

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

/// The row of an order that was carried out.
void encode_audit(const AuditEntry& entry, std::uint64_t number, std::string& out);
[[nodiscard]] Result<AuditEntry> decode_audit(std::string_view row);

}  // namespace pv2
