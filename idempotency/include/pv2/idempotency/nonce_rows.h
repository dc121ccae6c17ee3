// SPDX-License-Identifier: Apache-2.0
//
// The rows that remember operations of a ServerNonceManager beyond the life of its process. They
// are rows of the host (Space::kHost) in the store that has the operations' effects, so a row and
// an effect become durable in one batch. docs/store-format.md describes their bytes.
//
//     owner.save(batch, result);  // beside the rows of the effect
//     commit the batch;  owner.succeed();  // after a restart: load_nonces()

#pragma once

#include <pv2/base/status.h>
#include <pv2/store/procedure_store.h>

#include <string>
#include <string_view>
#include <vector>

#include "pv2/idempotency/server_nonce_manager.h"

namespace pv2 {

/// Keys of nonce rows begin with this; the host keeps its own rows elsewhere.
inline constexpr std::string_view kNonceRows = "pv2.nonce/";

/// An operation that was done, as its row says. A value.
struct NonceRow {
  NonceRequest request;
  WallTime done_at{};
  std::string result;
};

[[nodiscard]] std::string nonce_row_key(const Nonce& nonce);
void put_nonce_row(const NonceRow& row, RowBatch& batch);
/// kCorruption: the bytes are not those of a nonce row.
[[nodiscard]] Result<NonceRow> decode_nonce_row(std::string_view key, std::string_view value);

/// Tells `manager` of all operations whose rows are in `store`. Each is remembered for the
/// retention from now, however long ago it was: the wall clock may have jumped. Call it before the
/// first begin(). kCorruption: a row cannot be read; a server that ran without it could do its
/// operation twice.
Status load_nonces(ProcedureStore& store, ServerNonceManager& manager);

/// Adds the deletion of the rows of `nonces`, as expired() returns them, at most as many as a batch
/// of the store takes, less one: a row remembers which promises were forgotten, for the case that
/// the wall clock is set back. When the batch is durable, call ServerNonceManager::forget().
void erase_nonce_rows(const ServerNonceManager& manager, const std::vector<Nonce>& nonces,
                      RowBatch& batch);

}  // namespace pv2
