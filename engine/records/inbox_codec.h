// SPDX-License-Identifier: Apache-2.0
//
// The row of a message in an inbox: one frame, a protobuf message inside. The byte format is in
// docs/store-format.md. Decoding trusts nothing: a torn row is a Status that says what is wrong.

#pragma once

#include <pv2/base/status.h>

#include <string>
#include <string_view>

#include "model/inbox.h"

namespace pv2 {

/// Appends the row of `message` to `out`.
void encode_message(const InboxMessage& message, std::string& out);
/// Fails when the row is damaged (kCorruption), or of a kind that this program does not know
/// (kNotSupported).
[[nodiscard]] Result<InboxMessage> decode_message(std::string_view row);

}  // namespace pv2
