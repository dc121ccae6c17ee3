// SPDX-License-Identifier: Apache-2.0
//
// Sizes are checked at each change, not only when the record is made: the changes are kept in
// memory until then, and a step that loops without end has to be stopped early.

#include "steps/row_changes.h"

#include <fmt/format.h>

#include "model/check_limits.h"
#include "model/names.h"
#include "pv2/engine/executor_options.h"
#include "steps/row_bindings.h"
#include "steps/step_frame.h"

namespace pv2 {

void RowChanges::put(std::string_view key, std::string_view value) {
  if (fits(key, value) && may_write(key)) rows_.put(Space::kHost, key, value);
}

void RowChanges::erase(std::string_view key) {
  if (fits(key, {}) && may_write(key)) rows_.erase(Space::kHost, key);
}

Result<std::optional<std::string>> RowChanges::get(std::string_view key) const {
  std::optional<std::optional<std::string>> own;  // the last change that this run made to the row
  rows_.for_each([&](RowOperation operation, Space, std::string_view row, std::string_view value) {
    if (row != key) return;
    own = operation == RowOperation::kDelete ? std::nullopt
                                             : std::optional<std::string>(std::string(value));
  });
  if (own) return *own;
  return frame_.core.store.get(Space::kHost, key);
}

void RowChanges::append_to(RowBatch& batch) const {
  rows_.for_each(
      [&](RowOperation operation, Space space, std::string_view key, std::string_view value) {
        operation == RowOperation::kDelete ? batch.erase(space, key) : batch.put(space, key, value);
      });
}

// True if the row is bound to no key, or the procedure holds that key exclusively.
bool RowChanges::may_write(std::string_view row) {
  const RowBinding* const binding = binding_of(frame_.core.options.row_bindings, row);
  if (binding == nullptr) return true;
  if (holds_exclusively(frame_.core, frame_.execution, binding->key)) return true;
  if (refused_.ok()) {
    refused_ =
        Status(StatusCode::kFailedPrecondition,
               fmt::format("step {} changes a row with the prefix '{}', which is bound to {}, but "
                           "{} does not hold that exclusively; add it to locks()",
                           frame_.name(), binding->prefix, to_string(binding->key),
                           name_of(frame_.execution.id)));
  }
  return false;
}

// Whether this row, and all changes together, fit into one batch of the store.
bool RowChanges::fits(std::string_view row, std::string_view value) {
  const StoreLimits limits = frame_.core.store_limits;
  const std::size_t bytes_max = record_bytes_max(limits);
  const std::size_t bytes = rows_.bytes() + row.size() + value.size();
  const bool together = value.size() <= bytes_max && row.size() <= limits::kRowKeyBytes &&
                        bytes <= bytes_max && rows_.operations() < limits.batch_operations;
  if (together) return true;
  if (!refused_.ok()) return false;
  if (row.size() > limits::kRowKeyBytes) {
    refused_ =
        check_bytes(fmt::format("step {}: the key of the row '{}'", frame_.name(), shortened(row)),
                    row.size(), limits::kRowKeyBytes);
    return false;
  }
  refused_ = Status(
      StatusCode::kInvalidArgument,
      fmt::format("step {} of procedure {} writes {} rows, {} bytes; {} takes {} rows, {} bytes in "
                  "one batch",
                  frame_.name(), frame_.execution.id.value, rows_.operations() + 1, bytes,
                  frame_.core.store.name(), limits.batch_operations, bytes_max));
  rows_.clear();  // frees the memory: the step may run on for long
  return false;
}

}  // namespace pv2
