// SPDX-License-Identifier: Apache-2.0
//
// encode_header() writes each protobuf message straight into its frame. decode_header() offers each
// field to the reader of the relatives, of the submission and of the locks; a number that none of
// them knows was written by a newer program and is skipped.

#include "records/header_codec.h"

#include <pv2/base/assert.h>
#include <pv2/base/stored_time.h>
#include <pv2/base/wire.h>

#include <algorithm>
#include <utility>

#include "records/named_values.h"
#include "records/row_writer.h"

namespace pv2 {
namespace {

// Field numbers, persisted (docs/store-format.md). Retired ones are not used again.
namespace header_field {
enum : std::uint32_t {
  kId = 1,
  kParent = 2,
  kRoot = 3,
  kType = 4,
  kNonceGroup = 5,
  kNonceValue = 6,
  kFingerprintHigh = 7,
  kFingerprintLow = 8,
  kSubmitted = 9,
  kOwner = 10,
  kLock = 11,
  kLockScope = 12,
  kPriority = 13,
  kSpawnedAt = 14,
  kPrimaryClass = 15,
  kPrimaryName = 16,
  kOnFailure = 17,
  kUndoOrder = 18,
  kFingerprintForm = 19,
};
}  // namespace header_field
namespace lock_field {
enum : std::uint32_t { kClass = 1, kName = 2, kMode = 3 };
}  // namespace lock_field

void encode_nonce(RowWriter& row, const Execution& execution) {
  row.varint(header_field::kNonceGroup, execution.nonce().group);
  row.varint(header_field::kNonceValue, execution.nonce().value);
  const Fingerprint& fingerprint = execution.fingerprint();
  row.fixed64(header_field::kFingerprintHigh, fingerprint.high);
  row.fixed64(header_field::kFingerprintLow, fingerprint.low);
  if (fingerprint.form != Fingerprint::Form::kJoined) {
    row.varint(header_field::kFingerprintForm, static_cast<std::uint64_t>(fingerprint.form));
  }
}

// A message whose tags have one byte each, so its length is known before it is written.
void encode_lock(RowWriter& row, const ResourceKey& key, LockMode lock_mode) {
  const std::string_view name = key.name;
  const auto cls = static_cast<std::uint64_t>(key.cls);
  const auto mode = static_cast<std::uint64_t>(lock_mode);
  row.put(make_tag(header_field::kLock, WireType::kBytes));
  row.put(3 + varint_size(cls) + varint_size(name.size()) + name.size() + varint_size(mode));
  row.varint(lock_field::kClass, cls);
  row.bytes(lock_field::kName, name);
  row.varint(lock_field::kMode, mode);
}

Result<LockRequest> decode_lock(std::string_view bytes) {
  LockRequest request;
  NamedValues named;
  WireReader reader(bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case lock_field::kClass:
        named.read(reader, request.key.cls);
        break;
      case lock_field::kName:
        request.key.name = reader.bytes();
        break;
      case lock_field::kMode:
        named.read(reader, request.mode);
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return reader.status().with_context("lock");
  if (Status unknown = named.status("lock"); !unknown.ok()) return unknown;
  if (request.mode != LockMode::kShared && request.mode != LockMode::kExclusive) {
    return Status(StatusCode::kCorruption, "lock of unknown mode on " + to_string(request.key));
  }
  return request;
}

// Each of these takes the reader's current field if it knows it, and returns whether it does.

bool read_relatives(WireReader& reader, Execution& execution, HeaderFacts& facts) {
  switch (reader.number()) {
    case header_field::kId:
      execution.id = ProcedureId{reader.varint()};
      return true;
    case header_field::kParent:
      facts.parent = ProcedureId{reader.varint()};
      return true;
    case header_field::kRoot:
      facts.root = ProcedureId{reader.varint()};
      return true;
    case header_field::kSpawnedAt:
      execution.edit_place().spawned_at = reader.varint();
      return true;
    case header_field::kOnFailure:
      execution.on_failure = reader.varint() != 0 ? OnFailure::kReport : OnFailure::kFailTree;
      return true;
    case header_field::kUndoOrder:
      execution.undo_order = reader.varint() != 0 ? UndoOrder::kConcurrent : UndoOrder::kReverse;
      return true;
    default:
      return false;
  }
}

bool read_nonce_use(WireReader& reader, NamedValues& named, NonceUse& use) {
  switch (reader.number()) {
    case header_field::kNonceGroup:
      use.nonce.group = reader.varint();
      return true;
    case header_field::kNonceValue:
      use.nonce.value = reader.varint();
      return true;
    case header_field::kFingerprintHigh:
      use.fingerprint.high = reader.fixed64();
      return true;
    case header_field::kFingerprintLow:
      use.fingerprint.low = reader.fixed64();
      return true;
    case header_field::kFingerprintForm:
      named.read(reader, use.fingerprint.form);
      return true;
    default:
      return false;
  }
}

bool read_submission(WireReader& reader, NamedValues& named, Execution& execution,
                     HeaderFacts& facts) {
  switch (reader.number()) {
    case header_field::kType:
      facts.type_name = reader.bytes();
      return true;
    case header_field::kSubmitted:
      execution.submitted = wall_time(reader.sint());
      return true;
    case header_field::kOwner:
      execution.set_owner(reader.bytes());
      return true;
    case header_field::kPriority:
      named.read(reader, execution.priority);
      return true;
    default:
      return false;
  }
}

// The lock set of a header, before it is built again through the verbs of LockSet.
struct StoredLocks {
  LockRequests requests;
  ResourceKey primary;
  LockScope scope = LockScope::kOperation;

  Status read(WireReader& reader, NamedValues& named) {
    switch (reader.number()) {
      case header_field::kLock: {
        auto lock = decode_lock(reader.bytes());
        if (!lock.ok()) return lock.status();
        requests.push_back(*std::move(lock));
        break;
      }
      case header_field::kLockScope:
        named.read(reader, scope);
        break;
      case header_field::kPrimaryClass:
        named.read(reader, primary.cls);
        break;
      case header_field::kPrimaryName:
        primary.name = reader.bytes();
        break;
      default:
        break;
    }
    return Status();
  }
  // The first key that is added becomes the primary one.
  void move_to(LockSet& locks) {
    const auto first =
        std::find_if(requests.begin(), requests.end(),
                     [this](const LockRequest& request) { return request.key == primary; });
    if (first != requests.end()) std::iter_swap(requests.begin(), first);
    for (LockRequest& request : requests) locks.key(std::move(request.key), request.mode);
    locks.scope(scope);
  }
};

Status decode_engine_part(std::string_view bytes, Execution& execution, HeaderFacts& facts,
                          StoredLocks& locks) {
  NamedValues named;
  WireReader reader(bytes);
  NonceUse use;
  use.fingerprint.form = Fingerprint::Form::kJoined;  // unless the header names another
  while (reader.next()) {
    if (read_relatives(reader, execution, facts)) continue;
    if (read_nonce_use(reader, named, use)) continue;
    if (read_submission(reader, named, execution, facts)) continue;
    if (Status status = locks.read(reader, named); !status.ok()) return status;
  }
  if (!reader.ok()) return reader.status().with_context("header");
  if (use.nonce) execution.nonce_use.edit() = use;
  return named.status("header");
}

}  // namespace

std::size_t header_bytes_max(const Execution& execution) {
  const EntryLocks& locks = execution.locks();
  std::size_t bytes = 2 * kFrameHeaderBytes + 19 * RowWriter::kFieldMax +
                      locks.primary().name.size() + execution.name_of_type().size() +
                      execution.owner().size() + execution.arguments.size();
  for (std::size_t i = 0; i < locks.size(); ++i) {
    bytes += 4 * RowWriter::kFieldMax + locks.key(i).name.size();
  }
  return bytes;
}

void encode_header(const Execution& execution, std::string& out) {
  PV2_ASSERT(execution.id && execution.root()->id, "a procedure that has a record is in a tree");
  PV2_ASSERT(!execution.name_of_type().empty(), "a procedure that has a record has a type");
  const EntryLocks& locks = execution.locks();
  RowWriter row(header_bytes_max(execution));
  char* const frame = row.open_frame();
  row.varint(header_field::kId, execution.id.value);
  if (const Execution* const parent = execution.parent_execution()) {
    row.varint(header_field::kParent, parent->id.value);
  }
  row.varint(header_field::kRoot, execution.root()->id.value);
  if (execution.nonce()) encode_nonce(row, execution);
  row.sint(header_field::kSubmitted, micros(execution.submitted));
  row.varint(header_field::kPriority, static_cast<std::uint64_t>(execution.priority));
  if (execution.place->spawned_at != 0)
    row.varint(header_field::kSpawnedAt, execution.place->spawned_at);
  if (execution.reports()) row.varint(header_field::kOnFailure, 1);
  if (execution.undo_order == UndoOrder::kConcurrent) row.varint(header_field::kUndoOrder, 1);
  if (!locks.empty()) {
    row.varint(header_field::kLockScope, static_cast<std::uint64_t>(locks.scope()));
    row.varint(header_field::kPrimaryClass, static_cast<std::uint64_t>(locks.primary().cls));
  }
  row.bytes(header_field::kType, execution.name_of_type());
  if (!execution.owner().empty()) row.bytes(header_field::kOwner, execution.owner());
  if (!locks.empty()) row.bytes(header_field::kPrimaryName, locks.primary().name);
  for (std::size_t i = 0; i < locks.size(); ++i) encode_lock(row, locks.key(i), locks.mode(i));
  row.close_frame(frame);
  char* const arguments = row.open_frame();
  row.put_raw(execution.arguments);
  row.close_frame(arguments);
  row.append_to(out);
}

Status decode_header(std::string_view row, Execution& execution, HeaderFacts& facts) {
  const auto engine = split_row(row, execution.arguments, facts.user);
  if (!engine.ok()) return engine.status();
  StoredLocks locks;
  Status status = decode_engine_part(*engine, execution, facts, locks);
  if (!status.ok()) return status;
  if (!execution.id || !facts.root) {
    return Status(StatusCode::kCorruption, "header names no procedure or no root");
  }
  if (facts.type_name.empty()) return Status(StatusCode::kCorruption, "header names no type");
  if (!locks.requests.empty()) locks.move_to(execution.edit_locks());
  return Status();
}

}  // namespace pv2
