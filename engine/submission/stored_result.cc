// SPDX-License-Identifier: Apache-2.0
//
// read() looks in Space::kResult first, then among the rows of live procedures.

#include "submission/stored_result.h"

#include <utility>

#include "model/names.h"
#include "records/header_codec.h"
#include "records/kept_result.h"
#include "records/row_keys.h"
#include "records/row_parts.h"
#include "records/state_codec.h"

namespace pv2 {

ProcedureResult result_of(const Execution& root) {
  return {.id = root.id,
          .state = root.record.state,
          .status = root.record.failure() ? root.record.failure()->error : Status(),
          .result = std::string(root.record.result()),
          .bypassed = root.record.bypassed,
          .submitted = root.submitted,
          .finished = root.record.updated};
}

std::size_t bytes_of_rows(const Execution& root) {
  return kept_bytes(root.arguments.size(), root.record.image.size(), root.record.result().size(),
                    root.owner().size());
}

Result<std::optional<StoredResult>> StoredResult::read(ProcedureStore& store, ProcedureId id) {
  auto row = store.get(Space::kResult, result_key(id));
  if (!row.ok()) return row.status();
  if (*row) {
    const auto parts = split_result(**row);
    if (!parts) {
      return Status(StatusCode::kCorruption,
                    "the result of " + name_of(id) + " is cut short: its header has no end");
    }
    const std::size_t header_bytes = parts->header.size();
    return std::optional(StoredResult(**std::move(row), header_bytes, false));
  }
  auto header = store.get(Space::kProcedure, procedure_key(id, RowKind::kHeader));
  if (!header.ok()) return header.status();
  if (!*header) return std::optional<StoredResult>();
  const auto state = store.get(Space::kProcedure, procedure_key(id, RowKind::kState));
  if (!state.ok()) return state.status();
  if (!*state) return std::optional<StoredResult>();
  const std::size_t header_bytes = (*header)->size();
  return std::optional(StoredResult(**std::move(header) + **state, header_bytes, true));
}

Result<std::optional<Completed>> StoredResult::decode(ProcedureId id) const {
  Execution stored;
  HeaderFacts facts;
  PartStatus user = PartStatus::kIntact;
  Status status = decode_header(header(), stored, facts);
  if (status.ok()) status = decode_state(state(), {}, stored, user);
  if (!status.ok()) return status.with_context("record of " + name_of(id));
  if (facts.root != id || !is_finished(stored.record.state)) {
    if (in_place_) return std::optional<Completed>();  // of a child, or of a live procedure
    return Status(StatusCode::kCorruption, "what lies where the result of " + name_of(id) +
                                               " is kept is not the end of that procedure");
  }
  // An older program did not record whether there are audit rows, so they have to be looked for.
  return std::optional(Completed{.result = result_of(stored),
                                 .nonce_use = std::move(stored.nonce_use),
                                 .audited = stored.audited || in_place_,
                                 .in_place = in_place_,
                                 .ended_age = stored.record.ended_age,
                                 .bytes = bytes_of_rows(stored)});
}

void StoredResult::erase(ProcedureId id, bool in_place, RowBatch& batch) {
  if (!in_place) return batch.erase(Space::kResult, result_key(id));
  batch.erase(Space::kProcedure, procedure_key(id, RowKind::kHeader));
  batch.erase(Space::kProcedure, procedure_key(id, RowKind::kState));
}

}  // namespace pv2
