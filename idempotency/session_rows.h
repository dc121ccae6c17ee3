// SPDX-License-Identifier: Apache-2.0
//
// The rows of client sessions: one per session, one per saved response, one for the ids that may be
// given. docs/store-format.md describes their bytes.

#pragma once

#include <pv2/base/status.h>
#include <pv2/store/commit_request.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pv2/idempotency/client_sessions.h"

namespace pv2 {

/// What a session's row says.
struct SessionRow {
  SessionId id;
  std::string token;
  std::string owner;
  std::uint32_t window = 0;
  std::uint64_t first_unacked = 1;
};

/// What the row of a response says.
struct ResponseRow {
  SessionId session;
  std::uint64_t number = 0;
  Hash128 fingerprint;
  SavedResponse response;
};

/// Prefixes of keys: sessions, and the responses of one session.
[[nodiscard]] std::string all_sessions();
[[nodiscard]] std::string all_responses();
[[nodiscard]] std::string id_bound_key();

void put_session(const SessionRow& row, RowBatch& batch);
void erase_session(SessionId session, RowBatch& batch);
void put_response(const ResponseRow& row, RowBatch& batch);
void erase_response(SessionId session, std::uint64_t number, RowBatch& batch);
/// Ids below `bound` may have been given.
void put_id_bound(std::uint64_t bound, RowBatch& batch);

// kCorruption: the bytes are not those of such a row.
[[nodiscard]] Result<SessionRow> decode_session(std::string_view key, std::string_view value);
[[nodiscard]] Result<ResponseRow> decode_response(std::string_view key, std::string_view value);
[[nodiscard]] Result<std::uint64_t> decode_id_bound(std::string_view value);

}  // namespace pv2
