// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the decoders of everything that the engine keeps: header, state, nonce, watermark and
// limit rows, and their keys. The input is tried twice, as the bytes of a row (which the checksum
// mostly refuses) and as a message inside a proper frame. Decoding ends in a Status with a reason
// or in a value, and a decoded value encodes to bytes that mean the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pv2/base/assert.h"
#include "pv2/base/frame.h"
#include "records/audit_row.h"
#include "records/header_codec.h"
#include "records/inbox_codec.h"
#include "records/limit_row.h"
#include "records/nonce_record.h"
#include "records/row_keys.h"
#include "records/row_parts.h"
#include "records/state_codec.h"
#include "records/watermark.h"

namespace {

using namespace pv2;

void must_have_reason(const Status& status) {
  PV2_ASSERT(status.ok() || !status.message().empty(), "a refusal has a reason");
}

void fuzz_header(std::string_view row) {
  Execution execution;
  HeaderFacts facts;
  const Status status = decode_header(row, execution, facts);
  must_have_reason(status);
  if (!status.ok()) return;

  Execution parent;
  Execution root;
  parent.id = facts.parent;
  root.id = facts.root;
  execution.set_parent(facts.parent ? &parent : nullptr);
  execution.edit_place().root = &root;
  execution.names.edit().type = facts.type_name;
  std::string once;
  encode_header(execution, once);

  Execution again;
  HeaderFacts same_facts;
  const Status same = decode_header(once, again, same_facts);
  PV2_ASSERT(same.ok() && same_facts.user == PartStatus::kIntact,
             "what the encoder writes can be read");
  again.set_parent(facts.parent ? &parent : nullptr);
  again.edit_place().root = &root;
  again.names.edit().type = same_facts.type_name;
  PV2_ASSERT(same_facts.parent == parent.id && same_facts.root == root.id, "relatives are kept");
  std::string twice;
  encode_header(again, twice);
  PV2_ASSERT(once == twice, "a header and its copy through bytes have the same encoding");
}

// The transition that changes nothing.
Transition unchanged(const Execution& execution) {
  const Record& record = execution.record;
  Transition next;
  next.begin(record, record.updated);
  static_cast<Progress&>(next) = record;
  next.set_result(std::string(record.result()));
  if (record.failure() != nullptr) next.set_undo_error(record.failure()->undo);
  if (is_finished(record.state)) next.ended_age = std::max(record.ended_age, Duration::zero());
  if (record.failure() != nullptr && record.state != ProcedureState::kFailed) {
    next.set_error(record.parked ? record.failure()->parked : record.failure()->error);
  }
  return next;
}

void fuzz_state(std::string_view row) {
  const CommitSequence sequence{7};
  Execution execution;
  PartStatus user = PartStatus::kIntact;
  const Status status = decode_state(row, sequence, execution, user);
  must_have_reason(status);
  if (!status.ok()) return;

  std::string once;
  encode_state(execution, unchanged(execution), execution.record.step, once);
  Execution again;
  const Status same = decode_state(once, sequence, again, user);
  PV2_ASSERT(same.ok() && user == PartStatus::kIntact, "what the encoder writes can be read");
  std::string twice;
  encode_state(again, unchanged(again), again.record.step, twice);
  PV2_ASSERT(once == twice, "a state and its copy through bytes have the same encoding");
}

void fuzz_small_rows(std::string_view row) {
  if (const auto nonce = decode_nonce_record(row); nonce.ok()) {
    std::string again;
    encode_nonce_record(*nonce, again);
    const auto same = decode_nonce_record(again);
    PV2_ASSERT(same.ok() && same->id == nonce->id && same->fingerprint == nonce->fingerprint,
               "a nonce row means the same when it is written again");
  } else {
    must_have_reason(nonce.status());
  }
  if (const auto next_id = decode_watermark(row); next_id.ok()) {
    std::string again;
    encode_watermark(*next_id, again);
    PV2_ASSERT(decode_watermark(again)->next_id == next_id->next_id, "a watermark is kept");
  } else {
    must_have_reason(next_id.status());
  }
  if (const auto limit = decode_limit(row); limit.ok()) {
    std::string again;
    encode_limit(*limit, again);
    PV2_ASSERT(*decode_limit(again) == *limit, "a limit is kept");
  } else {
    must_have_reason(limit.status());
  }
}

void fuzz_message(std::string_view row) {
  const auto message = decode_message(row);
  if (!message.ok()) return must_have_reason(message.status());
  std::string once;
  encode_message(*message, once);
  const auto again = decode_message(once);
  PV2_ASSERT(again.ok(), "what the encoder writes can be read");
  std::string twice;
  encode_message(*again, twice);
  PV2_ASSERT(once == twice, "a message and its copy through bytes have the same encoding");
}

std::string key_of(const ProcedureKey& key) {
  if (key.kind == RowKind::kInbox) return inbox_key(key.id, key.number);
  if (key.kind == RowKind::kAudit) return audit_key(key.id, key.number);
  return std::string(std::string_view(procedure_key(key.id, key.kind)));
}

void fuzz_keys(std::string_view bytes) {
  if (const auto key = parse_procedure_key(bytes)) {
    PV2_ASSERT(key_of(*key) == bytes, "a key of a procedure is kept");
  }
  if (const auto nonce = parse_nonce_key(bytes)) {
    PV2_ASSERT(std::string_view(nonce_key(*nonce)) == bytes, "a key of a nonce is kept");
  }
  if (const auto key = parse_limit_key(bytes)) {
    PV2_ASSERT(limit_key(*key) == bytes, "a key of a limit is kept");
  }
}

void fuzz_row(std::string_view row) {
  fuzz_header(row);
  fuzz_state(row);
  fuzz_small_rows(row);
  fuzz_message(row);
  const auto audit = decode_audit(row);
  const auto place = decode_audit_place(row);
  PV2_ASSERT(!audit.ok() || (place.ok() && place->root == audit->root &&
                             place->procedure == audit->entry.procedure),
             "an order that can be read has a place");
  must_have_reason(audit.status());
  must_have_reason(place.status());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  fuzz_keys(input);
  fuzz_row(input);
  std::string framed;
  append_frame(framed, input);
  fuzz_row(framed);  // without the user's frame
  append_frame(framed, "fields");
  fuzz_row(framed);
  return 0;
}
