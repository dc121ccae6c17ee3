// SPDX-License-Identifier: Apache-2.0
//
// The moment at which the wall clock was trusted is a pair of varints, so a row has both or none.

#include "records/watermark.h"

#include <pv2/base/assert.h>
#include <pv2/base/frame.h>
#include <pv2/base/stored_time.h>
#include <pv2/base/wire.h>

#include "records/row_keys.h"

namespace pv2 {
namespace {

// Field numbers, persisted (docs/store-format.md).
enum : std::uint32_t { kNextId = 1, kAge = 2, kTrusted = 3 };

Status decode_trusted(std::string_view bytes, AgeMark& mark) {
  WireReader reader(bytes);
  std::uint64_t age = 0;
  std::uint64_t at = 0;
  if (!reader.take_varint(age) || !reader.take_varint(at)) {
    return reader.status().with_context("id watermark");
  }
  mark.trusted_age = Duration(unzigzag(age));
  mark.trusted_at = wall_time(unzigzag(at));
  return Status();
}

Status decode_fields(std::string_view bytes, Watermark& watermark) {
  WireReader reader(bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case kNextId:
        watermark.next_id = reader.varint();
        break;
      case kAge:
        watermark.age.age = Duration(reader.sint());
        break;
      case kTrusted: {
        Status status = decode_trusted(reader.bytes(), watermark.age);
        if (!status.ok()) return status;
        break;
      }
      default:
        break;
    }
  }
  return reader.ok() ? Status() : reader.status().with_context("id watermark");
}

}  // namespace

void encode_watermark(const Watermark& watermark, std::string& out) {
  PV2_ASSERT(watermark.next_id != 0, "an id is not 0");
  PV2_ASSERT(watermark.age.age >= Duration::zero(), "the age of a store is not negative");
  FrameWriter frame(out);
  append_varint_field(out, kNextId, watermark.next_id);
  append_sint_field(out, kAge, watermark.age.age.count());
  if (watermark.age.trusted_at) {
    std::string trusted;
    append_varint(trusted, zigzag(watermark.age.trusted_age.count()));
    append_varint(trusted, zigzag(micros(*watermark.age.trusted_at)));
    append_length_delimited(out, kTrusted, trusted);
  }
  frame.finish();
}

Result<Watermark> decode_watermark(std::string_view row) {
  const auto bytes = read_frame(row);
  if (!bytes) return Status(StatusCode::kCorruption, "id watermark does not match its checksum");
  Watermark watermark;
  if (Status status = decode_fields(*bytes, watermark); !status.ok()) return status;
  if (watermark.next_id == 0) {
    return Status(StatusCode::kCorruption, "id watermark says that the next id is 0");
  }
  if (watermark.next_id > kIdsMax) {
    return Status(StatusCode::kCorruption, "id watermark says that the next id is " +
                                               std::to_string(watermark.next_id) +
                                               ", which no counter reaches");
  }
  if (watermark.age.age < Duration::zero()) {
    return Status(StatusCode::kCorruption, "id watermark says that the store is younger than new");
  }
  return watermark;
}

}  // namespace pv2
