// SPDX-License-Identifier: Apache-2.0
//
// A row without a form of its fingerprint was written by an older program, which knew only one.

#include "records/nonce_record.h"

#include <pv2/base/assert.h>
#include <pv2/base/frame.h>
#include <pv2/base/wire.h>

#include <string>

namespace pv2 {
namespace {

// Field numbers, persisted (docs/store-format.md).
enum : std::uint32_t { kId = 1, kFingerprintHigh = 2, kFingerprintLow = 3, kFingerprintForm = 4 };

bool is_known_form(std::uint64_t form) {
  return form == static_cast<std::uint64_t>(Fingerprint::Form::kJoined) ||
         form == static_cast<std::uint64_t>(Fingerprint::Form::kExact);
}

}  // namespace

void encode_nonce_record(const NonceRecord& record, std::string& out) {
  PV2_ASSERT(record.id, "a nonce names its procedure");
  FrameWriter frame(out);
  append_varint_field(out, kId, record.id.value);
  append_fixed64_field(out, kFingerprintHigh, record.fingerprint.high);
  append_fixed64_field(out, kFingerprintLow, record.fingerprint.low);
  if (record.fingerprint.form != Fingerprint::Form::kJoined) {
    append_varint_field(out, kFingerprintForm, static_cast<std::uint64_t>(record.fingerprint.form));
  }
  frame.finish();
}

Result<NonceRecord> decode_nonce_record(std::string_view row) {
  const auto bytes = read_frame(row);
  if (!bytes) return Status(StatusCode::kCorruption, "nonce row does not match its checksum");
  NonceRecord record;
  // Unless the row names another.
  auto form = static_cast<std::uint64_t>(Fingerprint::Form::kJoined);
  WireReader reader(*bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case kId:
        record.id = ProcedureId{reader.varint()};
        break;
      case kFingerprintHigh:
        record.fingerprint.high = reader.fixed64();
        break;
      case kFingerprintLow:
        record.fingerprint.low = reader.fixed64();
        break;
      case kFingerprintForm:
        form = reader.varint();
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return reader.status().with_context("nonce row");
  if (!record.id) return Status(StatusCode::kCorruption, "nonce row names no procedure");
  if (!is_known_form(form)) {
    return Status(StatusCode::kCorruption, "nonce row has a fingerprint of form " +
                                               std::to_string(form) +
                                               ", which this program does not know");
  }
  record.fingerprint.form = static_cast<Fingerprint::Form>(form);
  return record;
}

}  // namespace pv2
