// SPDX-License-Identifier: Apache-2.0
//
// Nonce cells as stored cells: the nonce is the qualifier, 16 bytes big-endian; the family is
// empty.

#include "storage/nonce_cell.h"

#include <pv2/base/big_endian.h>
#include <pv2/base/fields.h>

namespace pv2::cluster {
namespace {

struct NonceValue {
  std::uint64_t fingerprint_first = 0;
  std::uint64_t fingerprint_second = 0;
  std::optional<WallTime> expires_at;
  WallTime done_at{};
  std::string result;

  void fields(auto& f) {
    f(1, "fingerprint_first", fingerprint_first);
    f(2, "fingerprint_second", fingerprint_second);
    f(3, "expires_at", expires_at);
    f(4, "done_at", done_at);
    f(5, "result", result);
  }
};

}  // namespace

StoredCell encode_nonce_cell(const NonceCell& nonce) {
  NonceValue value{nonce.fingerprint.first, nonce.fingerprint.second, nonce.expires_at,
                   nonce.done_at, nonce.result};
  StoredCell cell{.space = CellSpace::kNonces, .row = nonce.row};
  append_big_endian(cell.qualifier, nonce.nonce.group);
  append_big_endian(cell.qualifier, nonce.nonce.value);
  encode_fields(value, FieldSelection::kAll, cell.value);
  return cell;
}

std::optional<NonceCell> decode_nonce_cell(const StoredCell& cell) {
  if (cell.space != CellSpace::kNonces || cell.qualifier.size() != 2 * kBigEndianBytes)
    return std::nullopt;
  NonceValue value;
  if (!decode_fields(value, FieldSelection::kAll, cell.value).ok()) return std::nullopt;
  const std::string_view bytes = cell.qualifier;
  return NonceCell{
      .nonce = {read_big_endian(bytes), read_big_endian(bytes.substr(kBigEndianBytes))},
      .fingerprint = {value.fingerprint_first, value.fingerprint_second},
      .expires_at = value.expires_at,
      .done_at = value.done_at,
      .result = std::move(value.result),
      .row = cell.row};
}

}  // namespace pv2::cluster
