// SPDX-License-Identifier: Apache-2.0
//
// NonceRecord: the row of a nonce. It says which procedure the nonce was used for, and what was
// submitted then. The byte format is in docs/store-format.md.

#pragma once

#include <pv2/base/ids.h>
#include <pv2/base/status.h>

#include <string>
#include <string_view>

#include "model/identity.h"

namespace pv2 {

struct NonceRecord {
  ProcedureId id;
  Fingerprint fingerprint;
};

/// Appends the row to `out`.
void encode_nonce_record(const NonceRecord& record, std::string& out);
/// kCorruption when the row is damaged, names no procedure, or has a fingerprint of a form that
/// this program does not know.
[[nodiscard]] Result<NonceRecord> decode_nonce_record(std::string_view row);

}  // namespace pv2
