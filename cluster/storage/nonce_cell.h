// SPDX-License-Identifier: Apache-2.0
//
// NonceCell: what a region remembers of an operation with a nonce. It is a cell of the hidden space
// kNonces in the row that the operation wrote first, and in the same log entry as the effect. So
// nonces follow the data: into store files, recovery, moves and daughters. The region does not know
// ServerNonceManager; a server gives it these values at open (replay()).

#pragma once

#include <pv2/base/hash128.h>
#include <pv2/base/ids.h>
#include <pv2/base/time.h>

#include <optional>
#include <string>

#include "storage/stored_cell.h"

namespace pv2::cluster {

struct NonceCell {
  Nonce nonce{};
  Hash128 fingerprint{};
  std::optional<WallTime> expires_at{};
  WallTime done_at{};
  std::string result{};  ///< encode_fields() of the WriteResult.
  std::string row{};

  friend bool operator==(const NonceCell&, const NonceCell&) = default;
};

[[nodiscard]] StoredCell encode_nonce_cell(const NonceCell& nonce);
/// No value: these are not the bytes of a nonce cell.
[[nodiscard]] std::optional<NonceCell> decode_nonce_cell(const StoredCell& cell);

}  // namespace pv2::cluster
