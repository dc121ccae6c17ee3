// SPDX-License-Identifier: Apache-2.0
//
// A row's key is the prefix and both numbers of the nonce, big-endian; its value is a frame of
// numbered fields.

#include "pv2/idempotency/nonce_rows.h"

#include <pv2/base/assert.h>
#include <pv2/base/big_endian.h>
#include <pv2/base/frame.h>
#include <pv2/base/stored_time.h>
#include <pv2/base/wire.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "nonce_name.h"

namespace pv2 {
namespace {

// Field numbers, persisted (docs/store-format.md).
enum : std::uint32_t {
  kFingerprintFirst = 1,
  kFingerprintSecond = 2,
  kDoneAt = 3,
  kExpiresAt = 4,
  kResult = 5,
};
// Of the row of what was forgotten.
enum : std::uint32_t { kThrough = 1 };

// Shorter than the key of any nonce.
constexpr std::string_view kForgottenKey = "pv2.nonce/forgotten";
static_assert(kForgottenKey.starts_with(kNonceRows));

Result<WallTime> decode_forgotten(std::string_view value) {
  const auto bytes = read_frame(value);
  if (!bytes) {
    return Status(StatusCode::kCorruption,
                  "the row of forgotten nonces does not match its checksum");
  }
  WallTime through = WallTime::min();
  WireReader reader(*bytes);
  while (reader.next()) {
    if (reader.number() == kThrough) through = wall_time(reader.sint());
  }
  if (!reader.ok()) return reader.status().with_context("the row of forgotten nonces");
  return through;
}

}  // namespace

std::string nonce_row_key(const Nonce& nonce) {
  std::string key(kNonceRows);
  append_big_endian(key, nonce.group);
  append_big_endian(key, nonce.value);
  return key;
}

void put_nonce_row(const NonceRow& row, RowBatch& batch) {
  PV2_ASSERT(row.request.nonce, "an operation with a row has a nonce");
  batch.put_with(Space::kHost, nonce_row_key(row.request.nonce), [&](std::string& out) {
    FrameWriter frame(out);
    append_fixed64_field(out, kFingerprintFirst, row.request.fingerprint.first);
    append_fixed64_field(out, kFingerprintSecond, row.request.fingerprint.second);
    append_sint_field(out, kDoneAt, micros(row.done_at));
    if (row.request.expires_at) {
      append_sint_field(out, kExpiresAt, micros(*row.request.expires_at));
    }
    append_length_delimited(out, kResult, row.result);
    frame.finish();
  });
}

Result<NonceRow> decode_nonce_row(std::string_view key, std::string_view value) {
  if (key.size() != kNonceRows.size() + 2 * kBigEndianBytes || !key.starts_with(kNonceRows)) {
    return Status(
        StatusCode::kCorruption,
        "the key of a nonce row has " + std::to_string(key.size()) + " bytes or another prefix");
  }
  NonceRow row;
  row.request.nonce.group = read_big_endian(key.substr(kNonceRows.size(), kBigEndianBytes));
  row.request.nonce.value = read_big_endian(key.substr(kNonceRows.size() + kBigEndianBytes));
  const std::string name = "the row of " + name_of(row.request.nonce);
  const auto bytes = read_frame(value);
  if (!bytes) return Status(StatusCode::kCorruption, name + " does not match its checksum");
  bool has_result = false;
  WireReader reader(*bytes);
  while (reader.next()) {
    switch (reader.number()) {
      case kFingerprintFirst:
        row.request.fingerprint.first = reader.fixed64();
        break;
      case kFingerprintSecond:
        row.request.fingerprint.second = reader.fixed64();
        break;
      case kDoneAt:
        row.done_at = wall_time(reader.sint());
        break;
      case kExpiresAt:
        row.request.expires_at = wall_time(reader.sint());
        break;
      case kResult:
        row.result = reader.bytes();
        has_result = true;
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return reader.status().with_context(name);
  if (!has_result || !row.request.nonce) {
    return Status(StatusCode::kCorruption, name + " has no result, or no nonce");
  }
  return row;
}

Status load_nonces(ProcedureStore& store, ServerNonceManager& manager) {
  return store
      .scan(Space::kHost, kNonceRows,
            [&](const StoredRow& stored) {
              if (stored.key == kForgottenKey) {
                const auto through = decode_forgotten(stored.value);
                if (through.ok()) manager.forgot_through(*through);
                return through.status();
              }
              auto row = decode_nonce_row(stored.key, stored.value);
              if (!row.ok()) return row.status();
              // As if it had been done just now. How long ago it was, nobody knows: the wall clock
              // may have jumped while no process ran, and a nonce must not be forgotten early. The
              // sweep of the last process has deleted what was over by then.
              (void)manager.replay(row->request, WallTime::max(), std::move(row->result));
              return Status();
            })
      .with_context("loading nonces from " + store.name());
}

void erase_nonce_rows(const ServerNonceManager& manager, const std::vector<Nonce>& nonces,
                      RowBatch& batch) {
  if (manager.forgotten_through() != WallTime::min()) {
    batch.put_with(Space::kHost, kForgottenKey, [&](std::string& out) {
      FrameWriter frame(out);
      append_sint_field(out, kThrough, micros(manager.forgotten_through()));
      frame.finish();
    });
  }
  for (const Nonce& nonce : nonces) batch.erase(Space::kHost, nonce_row_key(nonce));
}

}  // namespace pv2
