// SPDX-License-Identifier: Apache-2.0
//
// A row says neither age nor id: its key does.

#include "records/kept_result.h"

#include <pv2/base/assert.h>
#include <pv2/base/frame.h>
#include <pv2/base/wire.h>

#include "model/names.h"
#include "records/row_keys.h"

namespace pv2 {
namespace {

// Field numbers, persisted (docs/store-format.md).
enum : std::uint32_t { kBytes = 1, kNonceGroup = 2, kNonceValue = 3, kFound = 4 };

Status decode_fields(std::string_view bytes, KeptResult& kept) {
  WireReader reader(bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case kBytes:
        kept.bytes = reader.varint();
        break;
      case kNonceGroup:
        kept.nonce.group = reader.varint();
        break;
      case kNonceValue:
        kept.nonce.value = reader.varint();
        break;
      case kFound:
        kept.found = reader.varint() != 0;
        break;
      default:
        break;
    }
  }
  return reader.ok() ? Status() : reader.status().with_context("the date of a result");
}

}  // namespace

void encode_kept(const KeptResult& kept, std::string& out) {
  PV2_ASSERT(kept.age >= Duration::zero(), "the age of a store is not negative");
  PV2_ASSERT(kept.id, "a result names its procedure");
  FrameWriter frame(out);
  append_varint_field(out, kBytes, kept.bytes);
  if (kept.nonce) {
    append_varint_field(out, kNonceGroup, kept.nonce.group);
    append_varint_field(out, kNonceValue, kept.nonce.value);
  }
  if (kept.found) append_varint_field(out, kFound, 1);
  frame.finish();
}

Result<KeptResult> decode_kept(std::string_view key, std::string_view row) {
  const auto dated = parse_kept_key(key);
  if (!dated) {
    return Status(StatusCode::kCorruption, "the key of the date of a result is not of its size");
  }
  const auto bytes = read_frame(row);
  if (!bytes) {
    return Status(StatusCode::kCorruption, "the date of the result of " + name_of(dated->id) +
                                               " does not match its checksum");
  }
  if (dated->age < Duration::zero()) {
    return Status(StatusCode::kCorruption, "the date of a result is before its store began");
  }
  KeptResult kept{.age = dated->age, .id = dated->id, .nonce = {}};
  if (Status status = decode_fields(*bytes, kept); !status.ok()) return status;
  return kept;
}

// Keys, frames and the engine's parts of an ordinary record take about 256 bytes.
std::size_t kept_bytes(std::size_t arguments, std::size_t image, std::size_t result,
                       std::size_t owner) noexcept {
  constexpr std::size_t kFraming = 256;
  return kFraming + arguments + image + result + owner;
}

}  // namespace pv2
