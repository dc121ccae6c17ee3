// SPDX-License-Identifier: Apache-2.0
//
// Decoding trusts nothing: a torn row is a Status that says what is wrong. The same holds for an
// order that this program does not know, except where only the place of the row matters.

#include "records/audit_row.h"

#include <pv2/base/assert.h>
#include <pv2/base/frame.h>
#include <pv2/base/stored_time.h>
#include <pv2/base/wire.h>

#include <string>

#include "records/row_keys.h"

namespace pv2 {
namespace {

// Field numbers, persisted (docs/store-format.md). Retired ones are not used again.
namespace audit_field {
enum : std::uint32_t {
  kVerb = 1,
  kNumber = 2,
  kAt = 3,
  kWho = 4,
  kWhy = 5,
  kProcedure = 6,
  kStep = 7,
  kRoot = 8,
  kNonceGroup = 9,
  kNonceValue = 10,
  kNamed = 11,
  kNextStep = 12
};
}  // namespace audit_field

// What a repeat of the order is compared with.
void append_nonce(std::string& out, const AuditEntry& entry) {
  append_varint_field(out, audit_field::kNonceGroup, entry.nonce.group);
  append_varint_field(out, audit_field::kNonceValue, entry.nonce.value);
  append_varint_field(out, audit_field::kNamed, entry.named.value);
  if (entry.next_step != 0) append_varint_field(out, audit_field::kNextStep, entry.next_step);
}

// If `root` is not 0 the row is a copy, under a member of the tree of `root`.
std::string encode_audit(const AuditEntry& entry, std::uint64_t number, ProcedureId root) {
  std::string out;
  FrameWriter frame(out);
  append_varint_field(out, audit_field::kVerb, static_cast<std::uint64_t>(entry.verb));
  append_varint_field(out, audit_field::kNumber, number);
  append_sint_field(out, audit_field::kAt, micros(entry.at));
  if (!entry.who.empty()) append_length_delimited(out, audit_field::kWho, entry.who);
  if (!entry.why.empty()) append_length_delimited(out, audit_field::kWhy, entry.why);
  append_varint_field(out, audit_field::kProcedure, entry.procedure.value);
  if (entry.step != 0) append_varint_field(out, audit_field::kStep, entry.step);
  if (root) append_varint_field(out, audit_field::kRoot, root.value);
  if (entry.nonce) append_nonce(out, entry);
  frame.finish();
  return out;
}

bool is_known_verb(std::uint64_t verb) {
  return verb >= static_cast<std::uint64_t>(RepairVerb::kRetryNow) &&
         verb <= static_cast<std::uint64_t>(RepairVerb::kBypass);
}

Status damaged() {
  return Status(StatusCode::kCorruption, "an audit row does not match its checksum");
}

}  // namespace

void insert_audit(const AuditEntry& entry, ProcedureId root, std::uint64_t number,
                  RowBatch& batch) {
  PV2_ASSERT(root && entry.procedure, "an audit entry has a root and a procedure");
  PV2_ASSERT(!entry.nonce || entry.named, "an order with a nonce names a procedure");
  batch.insert(Space::kProcedure, audit_key(root, number), encode_audit(entry, number, {}));
  if (entry.procedure != root) {
    batch.insert(Space::kProcedure, audit_key(entry.procedure, number),
                 encode_audit(entry, number, root));
  }
  if (!entry.nonce || entry.named == root || entry.named == entry.procedure) return;
  AuditEntry pointer;
  pointer.verb = entry.verb;
  pointer.procedure = entry.procedure;
  std::string row = encode_audit(pointer, number, root);
  PV2_ASSERT(row.size() <= kAuditPointerBytes, "a pointer to an audit entry is small");
  batch.insert(Space::kProcedure, audit_key(entry.named, number), row);
}

Result<AuditRow> decode_audit(std::string_view row) {
  const auto bytes = read_frame(row);
  if (!bytes) return damaged();
  AuditRow audit;
  AuditEntry& entry = audit.entry;
  std::uint64_t verb = 0;
  WireReader reader(*bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case audit_field::kVerb:
        verb = reader.varint();
        break;
      case audit_field::kAt:
        entry.at = wall_time(reader.sint());
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
      case audit_field::kNonceGroup:
        entry.nonce.group = reader.varint();
        break;
      case audit_field::kNonceValue:
        entry.nonce.value = reader.varint();
        break;
      case audit_field::kNamed:
        entry.named = ProcedureId{reader.varint()};
        break;
      case audit_field::kNextStep:
        entry.next_step = static_cast<std::uint32_t>(reader.varint());
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return reader.status();
  if (!is_known_verb(verb)) {
    return Status(StatusCode::kCorruption, "an audit row has order " + std::to_string(verb) +
                                               ", which this program does not know");
  }
  entry.verb = static_cast<RepairVerb>(verb);
  return audit;
}

Result<AuditPlace> decode_audit_place(std::string_view row) {
  const auto bytes = read_frame(row);
  if (!bytes) return damaged();
  AuditPlace place;
  WireReader reader(*bytes);
  while (reader.next()) {
    if (reader.number() == audit_field::kProcedure) place.procedure = ProcedureId{reader.varint()};
    if (reader.number() == audit_field::kRoot) place.root = ProcedureId{reader.varint()};
    if (reader.number() == audit_field::kNamed) place.named = ProcedureId{reader.varint()};
  }
  if (!reader.ok()) return reader.status();
  return place;
}

}  // namespace pv2
