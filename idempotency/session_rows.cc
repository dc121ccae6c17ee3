// SPDX-License-Identifier: Apache-2.0
//
// Keys: the prefix, a letter for the kind of row, the session's id and, of a response, its number.
// Values: a frame of numbered fields.

#include "session_rows.h"

#include <pv2/base/big_endian.h>
#include <pv2/base/frame.h>
#include <pv2/base/wire.h>

#include <memory>
#include <utility>

namespace pv2 {
namespace {

// Letters in keys, persisted.
constexpr char kBound = 'i';
constexpr char kSession = 's';
constexpr char kResponse = 'r';

// Field numbers, persisted (docs/store-format.md).
namespace session_field {
enum : std::uint32_t { kToken = 1, kOwner = 2, kWindow = 3, kFirstUnacked = 4 };
}
namespace response_field {
enum : std::uint32_t { kFingerprintFirst = 1, kFingerprintSecond = 2, kCode = 3, kBody = 4 };
}
namespace bound_field {
enum : std::uint32_t { kBound = 1 };
}

constexpr std::uint64_t kLastCode = static_cast<std::uint64_t>(kStatusCodeMax);

std::string prefix_of(char kind) {
  std::string key(kSessionRows);
  key.push_back(kind);
  return key;
}
std::string key_of(SessionId session) {
  std::string key = prefix_of(kSession);
  append_big_endian(key, session.value);
  return key;
}
std::string key_of(SessionId session, std::uint64_t number) {
  std::string key = prefix_of(kResponse);
  append_big_endian(key, session.value);
  append_big_endian(key, number);
  return key;
}

Status corrupt(const std::string& what) {
  return Status(StatusCode::kCorruption, "a row of sessions: " + what);
}

// The numbers in `key`, which are behind `kSessionRows` and a letter.
Result<std::string_view> numbers_in(std::string_view key, std::size_t count) {
  const std::size_t prefix = kSessionRows.size() + 1;
  if (key.size() != prefix + count * kBigEndianBytes) {
    return corrupt("its key has " + std::to_string(key.size()) + " bytes");
  }
  return key.substr(prefix);
}

}  // namespace

std::string all_sessions() { return prefix_of(kSession); }
std::string all_responses() { return prefix_of(kResponse); }
std::string id_bound_key() { return prefix_of(kBound); }

void put_session(const SessionRow& row, RowBatch& batch) {
  batch.put_with(Space::kHost, key_of(row.id), [&](std::string& out) {
    FrameWriter frame(out);
    append_length_delimited(out, session_field::kToken, row.token);
    append_length_delimited(out, session_field::kOwner, row.owner);
    append_varint_field(out, session_field::kWindow, row.window);
    append_varint_field(out, session_field::kFirstUnacked, row.first_unacked);
    frame.finish();
  });
}

void erase_session(SessionId session, RowBatch& batch) {
  batch.erase(Space::kHost, key_of(session));
}

void put_response(const ResponseRow& row, RowBatch& batch) {
  batch.put_with(Space::kHost, key_of(row.session, row.number), [&](std::string& out) {
    FrameWriter frame(out);
    append_fixed64_field(out, response_field::kFingerprintFirst, row.fingerprint.first);
    append_fixed64_field(out, response_field::kFingerprintSecond, row.fingerprint.second);
    const Status status = row.response->status();
    append_varint_field(out, response_field::kCode, static_cast<std::uint64_t>(status.code()));
    append_length_delimited(
        out, response_field::kBody,
        row.response->ok() ? std::string_view(**row.response) : status.message());
    frame.finish();
  });
}

void erase_response(SessionId session, std::uint64_t number, RowBatch& batch) {
  batch.erase(Space::kHost, key_of(session, number));
}

void put_id_bound(std::uint64_t bound, RowBatch& batch) {
  batch.put_with(Space::kHost, id_bound_key(), [&](std::string& out) {
    FrameWriter frame(out);
    append_varint_field(out, bound_field::kBound, bound);
    frame.finish();
  });
}

Result<SessionRow> decode_session(std::string_view key, std::string_view value) {
  const auto numbers = numbers_in(key, 1);
  if (!numbers.ok()) return numbers.status();
  SessionRow row;
  row.id = {read_big_endian(*numbers)};
  const auto bytes = read_frame(value);
  if (!bytes) return corrupt("session " + std::to_string(row.id.value) + " fails its checksum");
  WireReader reader(*bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case session_field::kToken:
        row.token = reader.bytes();
        break;
      case session_field::kOwner:
        row.owner = reader.bytes();
        break;
      case session_field::kWindow:
        row.window = static_cast<std::uint32_t>(reader.varint());
        break;
      case session_field::kFirstUnacked:
        row.first_unacked = reader.varint();
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return reader.status().with_context("a row of sessions");
  if (row.window == 0 || row.first_unacked == 0) return corrupt("a session without a window");
  return row;
}

Result<ResponseRow> decode_response(std::string_view key, std::string_view value) {
  const auto numbers = numbers_in(key, 2);
  if (!numbers.ok()) return numbers.status();
  ResponseRow row;
  row.session = {read_big_endian(numbers->substr(0, kBigEndianBytes))};
  row.number = read_big_endian(numbers->substr(kBigEndianBytes));
  const auto bytes = read_frame(value);
  if (!bytes) {
    return corrupt("response " + std::to_string(row.number) + " of session " +
                   std::to_string(row.session.value) + " fails its checksum");
  }
  std::uint64_t code = 0;
  std::string body;
  WireReader reader(*bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case response_field::kFingerprintFirst:
        row.fingerprint.first = reader.fixed64();
        break;
      case response_field::kFingerprintSecond:
        row.fingerprint.second = reader.fixed64();
        break;
      case response_field::kCode:
        code = reader.varint();
        break;
      case response_field::kBody:
        body = reader.bytes();
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return reader.status().with_context("a row of sessions");
  if (code > kLastCode) {
    return corrupt("a response with code " + std::to_string(code) +
                   ", which this version does not know");
  }
  row.response = code == 0 ? std::make_shared<const Response>(std::move(body))
                           : std::make_shared<const Response>(
                                 Status(static_cast<StatusCode>(code), std::move(body)));
  return row;
}

Result<std::uint64_t> decode_id_bound(std::string_view value) {
  const auto bytes = read_frame(value);
  if (!bytes) return corrupt("the bound of the ids fails its checksum");
  std::uint64_t bound = 0;
  WireReader reader(*bytes);
  while (reader.next()) {
    if (reader.number() == bound_field::kBound) bound = reader.varint();
  }
  if (!reader.ok()) return reader.status().with_context("a row of sessions");
  return bound;
}

}  // namespace pv2
