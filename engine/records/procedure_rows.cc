// SPDX-License-Identifier: Apache-2.0
//
// A row is encoded beside the batch and appended to it.

#include "records/procedure_rows.h"

#include <pv2/base/assert.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "records/header_codec.h"
#include "records/kept_result.h"
#include "records/row_keys.h"
#include "records/row_parts.h"
#include "records/state_codec.h"

namespace pv2 {
namespace {

// The key of the date that the last record has; nullopt: it was not the end of a root.
std::optional<KeptKeyBytes> last_date(const Execution& execution) {
  if (execution.record.ended_age == Progress::kNotDated) return std::nullopt;
  return kept_key(execution.record.ended_age, execution.id);
}

// The date is the row by which expiry finds the result. Inserted: the date that the last record may
// have was deleted just before. A row that is inserted and deleted soon costs a store the least.
void insert_date(const Execution& execution, const Transition& last, RowBatch& batch) {
  const std::size_t image = last.new_image ? last.image.size() : execution.record.image.size();
  const KeptResult kept{.age = last.ended_age,
                        .id = execution.id,
                        .nonce = execution.nonce(),
                        .bytes = kept_bytes(execution.arguments.size(), image, last.result().size(),
                                            execution.owner().size())};
  batch.insert_with(Space::kEngine, kept_key(kept.age, kept.id),
                    [&](std::string& out) { encode_kept(kept, out); });
}

void encode_result(const Execution& execution, const Transition& last, std::uint32_t ran_step,
                   std::string& out) {
  const std::size_t start = out.size();
  encode_header(execution, out);
  const std::size_t header_bytes = out.size() - start;
  encode_state(execution, last, ran_step, out);
  const auto parts = split_result(std::string_view(out).substr(start));
  PV2_ASSERT(parts && parts->header.size() == header_bytes,
             "a result is split where its header ends");
}

// Nothing of the root is left among live procedures.
void move_to_results(const Execution& execution, const Transition& last, std::uint32_t ran_step,
                     RowBatch& batch) {
  batch.erase(Space::kProcedure, procedure_key(execution.id, RowKind::kHeader));
  batch.erase(Space::kProcedure, procedure_key(execution.id, RowKind::kState));
  const auto write = [&](std::string& out) { encode_result(execution, last, ran_step, out); };
  const auto key = result_key(execution.id);
  // An end that an abort has taken back, and that is followed by another one, left its row there.
  execution.record.in_results ? batch.update_with(Space::kResult, key, write)
                              : batch.insert_with(Space::kResult, key, write);
  insert_date(execution, last, batch);
}

// The last record was an end, which an abort takes back.
void move_back(const Execution& execution, const Transition& next, std::uint32_t ran_step,
               RowBatch& batch) {
  batch.erase(Space::kResult, result_key(execution.id));
  batch.put_with(Space::kProcedure, procedure_key(execution.id, RowKind::kHeader),
                 [&](std::string& out) { encode_header(execution, out); });
  batch.put_with(Space::kProcedure, procedure_key(execution.id, RowKind::kState),
                 [&](std::string& out) { encode_state(execution, next, ran_step, out); });
}

}  // namespace

void insert_rows(const Execution& execution, const Transition& first, RowBatch& batch) {
  if (ends_root(execution, first) && first.in_results) {
    return move_to_results(execution, first, 0, batch);
  }
  batch.insert_with(Space::kProcedure, procedure_key(execution.id, RowKind::kHeader),
                    [&](std::string& out) { encode_header(execution, out); });
  batch.insert_with(Space::kProcedure, procedure_key(execution.id, RowKind::kState),
                    [&](std::string& out) { encode_state(execution, first, 0, out); });
  if (ends_root(execution, first)) insert_date(execution, first, batch);
}

void update_state(const Execution& execution, const Transition& next, std::uint32_t ran_step,
                  RowBatch& batch) {
  if (const auto date = last_date(execution)) batch.erase(Space::kEngine, *date);
  const bool ends = ends_root(execution, next);
  if (ends && next.in_results) return move_to_results(execution, next, ran_step, batch);
  if (ends) insert_date(execution, next, batch);
  if (execution.record.in_results) return move_back(execution, next, ran_step, batch);
  batch.update_with(Space::kProcedure, procedure_key(execution.id, RowKind::kState),
                    [&](std::string& out) { encode_state(execution, next, ran_step, out); });
}

void redate_end(const Execution& execution, Transition& last, Duration age, std::uint32_t ran_step,
                RowBatch& batch) {
  PV2_ASSERT(ends_root(execution, last), "a record that is dated ends a root");
  const KeptKeyBytes date = kept_key(last.ended_age, execution.id);
  const KeptKeyBytes taken_back = last_date(execution).value_or(date);
  const auto header = procedure_key(execution.id, RowKind::kHeader);
  const auto state = procedure_key(execution.id, RowKind::kState);
  const auto result = result_key(execution.id);
  RowBatch redated;
  batch.for_each(
      [&](RowOperation operation, Space space, std::string_view key, std::string_view value) {
        const bool is_of_record = (space == Space::kProcedure && (key == header || key == state)) ||
                                  (space == Space::kResult && key == result) ||
                                  (space == Space::kEngine && (key == date || key == taken_back));
        if (!is_of_record) redated.add(operation, space, key, value);
      });
  last.ended_age = age;
  update_state(execution, last, ran_step, redated);
  batch = std::move(redated);
}

}  // namespace pv2
