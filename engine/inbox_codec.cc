// SPDX-License-Identifier: Apache-2.0
//
// Decoding trusts nothing, as in record_codec.cc.

#include "inbox_codec.h"

#include <pv2/base/frame.h>
#include <pv2/base/wire.h>

#include "record_codec.h"

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

namespace audit_field {
enum : std::uint32_t {
  kVerb = 1,
  kNumber = 2,
  kAt = 3,
  kWho = 4,
  kWhy = 5,
  kProcedure = 6,
  kStep = 7,
  kRoot = 8
};
}  // namespace audit_field

// With a `root` it is the copy under a member of its tree.
std::string encode_audit(const AuditEntry& entry, std::uint64_t number, ProcedureId root) {
  std::string out;
  FrameWriter frame(out);
  append_varint_field(out, audit_field::kVerb, static_cast<std::uint64_t>(entry.verb));
  append_varint_field(out, audit_field::kNumber, number);
  append_sint_field(out, audit_field::kAt, entry.at.time_since_epoch().count());
  if (!entry.who.empty()) append_length_delimited(out, audit_field::kWho, entry.who);
  if (!entry.why.empty()) append_length_delimited(out, audit_field::kWhy, entry.why);
  append_varint_field(out, audit_field::kProcedure, entry.procedure.value);
  if (entry.step != 0) append_varint_field(out, audit_field::kStep, entry.step);
  if (root) append_varint_field(out, audit_field::kRoot, root.value);
  frame.finish();
  return out;
}

}  // namespace

void insert_audit(const AuditEntry& entry, ProcedureId root, std::uint64_t number,
                  RowBatch& batch) {
  batch.insert(Space::kProcedure, audit_key(root, number), encode_audit(entry, number, {}));
  if (entry.procedure == root) return;
  batch.insert(Space::kProcedure, audit_key(entry.procedure, number),
               encode_audit(entry, number, root));
}

Result<AuditRow> decode_audit(std::string_view row) {
  const auto bytes = read_frame(row);
  if (!bytes) return Status(StatusCode::kCorruption, "an audit row does not match its checksum");
  AuditRow audit;
  AuditEntry& entry = audit.entry;
  WireReader reader(*bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case audit_field::kVerb:
        entry.verb = static_cast<RepairVerb>(reader.varint());
        break;
      case audit_field::kAt:
        entry.at = WallTime(Duration(reader.sint()));
        break;
      case audit_field::kWho:
        entry.who = reader.bytes();
        break;
      case audit_field::kWhy:
        entry.why = reader.bytes();
        break;
      case audit_field::kProcedure:
        entry.procedure = ProcedureId{reader.varint()};
        break;
      case audit_field::kStep:
        entry.step = static_cast<std::uint32_t>(reader.varint());
        break;
      case audit_field::kRoot:
        audit.root = ProcedureId{reader.varint()};
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return reader.status();
  return audit;
}

void encode_message(const InboxMessage& message, std::string& out) {
  FrameWriter frame(out);
  append_varint_field(out, kKind, static_cast<std::uint64_t>(message.kind));
  append_varint_field(out, kNumber, message.number);
  append_sint_field(out, kAt, message.at.time_since_epoch().count());
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
        message.at = WallTime(Duration(reader.sint()));
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
  if (kind != static_cast<std::uint64_t>(InboxMessage::Kind::kAbort) &&
      kind != static_cast<std::uint64_t>(InboxMessage::Kind::kSignal)) {
    return Status(StatusCode::kNotSupported,
                  "it is of kind " + std::to_string(kind) + ", which this program does not know");
  }
  message.kind = static_cast<InboxMessage::Kind>(kind);
  return message;
}

}  // namespace pv2
