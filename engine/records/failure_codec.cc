// SPDX-License-Identifier: Apache-2.0
//
// The error and the reason for parking are fields of the state row; the error of an undo, which is
// rare, is a message of its own.

#include "records/failure_codec.h"

#include <pv2/base/assert.h>

#include <utility>

#include "records/state_fields.h"

namespace pv2 {
namespace {

namespace error_field {
enum : std::uint32_t { kCode = 1, kMessage = 2 };
}  // namespace error_field

void encode_undo_error(RowWriter& row, const Status& error) {
  const auto code = static_cast<std::uint64_t>(error.code());
  const std::size_t message = error.message().size();
  row.put(make_tag(state_field::kUndoError, WireType::kBytes));
  row.put(2 + varint_size(code) + varint_size(message) + message);
  row.varint(error_field::kCode, code);
  row.bytes(error_field::kMessage, error.message());
}

// OK if `bytes` are empty.
Status decode_undo_error(std::string_view bytes, Status& error) {
  auto code = StatusCode::kOk;
  std::string message;
  NamedValues named;
  WireReader reader(bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case error_field::kCode:
        named.read(reader, code);
        break;
      case error_field::kMessage:
        message = reader.bytes();
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return reader.status().with_context("error of an undo");
  if (Status unknown = named.status("error of an undo"); !unknown.ok()) return unknown;
  if (code != StatusCode::kOk) error = Status(code, std::move(message));
  return Status();
}

}  // namespace

void encode_failure(RowWriter& row, const FailureAfter& failure) {
  if (!failure.parked.ok()) {
    row.varint(state_field::kParkedCode, static_cast<std::uint64_t>(failure.parked.code()));
    row.bytes(state_field::kParkedMessage, failure.parked.message());
  }
  if (!failure.error.ok()) {
    row.varint(state_field::kErrorCode, static_cast<std::uint64_t>(failure.error.code()));
    row.bytes(state_field::kErrorMessage, failure.error.message());
    if (failure.sequence) row.varint(state_field::kFailureSequence, failure.sequence->value);
  }
  if (!failure.undo.ok()) encode_undo_error(row, failure.undo);
}

bool StoredFailure::read(WireReader& reader, NamedValues& named) {
  switch (reader.number()) {
    case state_field::kErrorCode:
      named.read(reader, error_code);
      return true;
    case state_field::kErrorMessage:
      error_message = reader.bytes();
      return true;
    case state_field::kParkedCode:
      named.read(reader, parked_code);
      return true;
    case state_field::kParkedMessage:
      parked_message = reader.bytes();
      return true;
    case state_field::kUndoError:
      undo = reader.bytes();
      return true;
    case state_field::kFailureSequence:
      sequence = CommitSequence{reader.varint()};
      return true;
    default:
      return false;
  }
}

Result<std::unique_ptr<Failure>> StoredFailure::decode() const {
  Status undo_error;
  if (Status status = decode_undo_error(undo, undo_error); !status.ok()) return status;
  if (error_code == StatusCode::kOk && parked_code == StatusCode::kOk && undo_error.ok()) {
    return std::unique_ptr<Failure>();
  }
  auto failure = std::make_unique<Failure>();
  failure->sequence = sequence;
  if (error_code != StatusCode::kOk) {
    failure->error = Status(error_code, std::string(error_message));
  }
  if (parked_code != StatusCode::kOk) {
    failure->parked = Status(parked_code, std::string(parked_message));
  }
  failure->undo = std::move(undo_error);
  return failure;
}

}  // namespace pv2
