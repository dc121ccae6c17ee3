// SPDX-License-Identifier: Apache-2.0
//
// One frame with one number (docs/store-format.md).

#include "records/limit_row.h"

#include <pv2/base/frame.h>
#include <pv2/base/wire.h>

#include <algorithm>

namespace pv2 {
namespace {

// Field number, persisted.
constexpr std::uint32_t kLimit = 1;

}  // namespace

void encode_limit(std::uint32_t limit, std::string& out) {
  FrameWriter frame(out);
  append_varint_field(out, kLimit, limit);
  frame.finish();
}

Result<std::uint32_t> decode_limit(std::string_view row) {
  const auto bytes = read_frame(row);
  if (!bytes) return Status(StatusCode::kCorruption, "limit does not match its checksum");
  std::uint64_t limit = 0;
  WireReader reader(*bytes);
  while (reader.next()) {
    if (reader.number() == kLimit) limit = reader.varint();
  }
  if (!reader.ok()) return reader.status().with_context("limit");
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(limit, UINT32_MAX - 1));
}

}  // namespace pv2
