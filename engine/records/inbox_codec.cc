// SPDX-License-Identifier: Apache-2.0
//
// One message per row, in a frame of its own.

#include "records/inbox_codec.h"

#include <pv2/base/assert.h>
#include <pv2/base/frame.h>
#include <pv2/base/stored_time.h>
#include <pv2/base/wire.h>

namespace pv2 {
namespace {

// Field numbers, persisted (docs/store-format.md). Retired ones are not used again.
enum : std::uint32_t {
  kKind = 1,
  kNumber = 2,
  kAt = 3,
  kWho = 4,
  kPayload = 5,
  kName = 6,
  kToUndo = 7
};

bool is_known(std::uint64_t kind) {
  return kind == static_cast<std::uint64_t>(InboxMessage::Kind::kAbort) ||
         kind == static_cast<std::uint64_t>(InboxMessage::Kind::kSignal);
}

}  // namespace

void encode_message(const InboxMessage& message, std::string& out) {
  PV2_ASSERT(is_known(static_cast<std::uint64_t>(message.kind)),
             "a message is an abort or a signal");
  FrameWriter frame(out);
  append_varint_field(out, kKind, static_cast<std::uint64_t>(message.kind));
  append_varint_field(out, kNumber, message.number);
  append_sint_field(out, kAt, micros(message.at));
  if (!message.who.empty()) append_length_delimited(out, kWho, message.who);
  if (!message.payload.empty()) append_length_delimited(out, kPayload, message.payload);
  if (!message.name.empty()) append_length_delimited(out, kName, message.name);
  if (message.to_undo) append_varint_field(out, kToUndo, 1);
  frame.finish();
}

Result<InboxMessage> decode_message(std::string_view row) {
  const auto bytes = read_frame(row);
  if (!bytes) return Status(StatusCode::kCorruption, "it does not match its checksum");
  InboxMessage message;
  std::uint64_t kind = 0;
  WireReader reader(*bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case kKind:
        kind = reader.varint();
        break;
      case kNumber:
        message.number = reader.varint();
        break;
      case kAt:
        message.at = wall_time(reader.sint());
        break;
      case kWho:
        message.who = reader.bytes();
        break;
      case kPayload:
        message.payload = reader.bytes();
        break;
      case kName:
        message.name = reader.bytes();
        break;
      case kToUndo:
        message.to_undo = reader.varint() != 0;
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return reader.status();
  if (!is_known(kind)) {
    return Status(StatusCode::kNotSupported,
                  "it is of kind " + std::to_string(kind) + ", which this program does not know");
  }
  message.kind = static_cast<InboxMessage::Kind>(kind);
  return message;
}

}  // namespace pv2
