// SPDX-License-Identifier: Apache-2.0
//
// StoredResult: the rows of a root that has ended. Usually it is one row in Space::kResult. A
// header and a state among those of live procedures are the result of a root that an older program
// ended, or of one that is too large to be moved.

#pragma once

#include <pv2/store/procedure_store.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/completed_results.h"
#include "model/execution.h"

namespace pv2 {

/// A value: it owns a copy of the rows.
class StoredResult {
 public:
  /// Reads the rows of `id`, which is not live. nullopt: there are none. kCorruption: they cannot
  /// be read. May read the disk.
  static Result<std::optional<StoredResult>> read(ProcedureStore& store, ProcedureId id);

  [[nodiscard]] std::string_view header() const noexcept {
    return std::string_view(rows_).substr(0, header_bytes_);
  }
  [[nodiscard]] std::string_view state() const noexcept {
    return std::string_view(rows_).substr(header_bytes_);
  }
  /// What the rows say. nullopt: they are not those of a root that has ended.
  [[nodiscard]] Result<std::optional<Completed>> decode(ProcedureId id) const;
  /// Adds to `batch` that the rows of `id` are deleted. `in_place`: they lie among those of live
  /// procedures.
  static void erase(ProcedureId id, bool in_place, RowBatch& batch);

 private:
  StoredResult(std::string rows, std::size_t header_bytes, bool in_place)
      : rows_(std::move(rows)), header_bytes_(header_bytes), in_place_(in_place) {}

  std::string rows_;  // the header, then the state
  std::size_t header_bytes_;
  bool in_place_;
};

/// The result of `root`, which has ended.
[[nodiscard]] ProcedureResult result_of(const Execution& root);
/// About the size of the rows of a root that has ended.
[[nodiscard]] std::size_t bytes_of_rows(const Execution& root);

}  // namespace pv2
