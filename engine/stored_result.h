// SPDX-License-Identifier: Apache-2.0
//
// StoredResult: the rows of a root that has ended. They are one row in Space::kResult. Older
// programs left them in Space::kProcedure, where those of live procedures are; so are those that
// are too large to be moved.

#pragma once

#include <pv2/store/procedure_store.h>

#include <optional>
#include <string>
#include <string_view>

#include "completed_results.h"
#include "execution.h"

namespace pv2 {

/// A value that owns a copy of the rows. Const methods may be called concurrently.
class StoredResult {
 public:
  /// Reads the rows of `id`, which is not live. nullopt: it has none. May block on the disk.
  static Result<std::optional<StoredResult>> read(ProcedureStore& store, ProcedureId id);

  [[nodiscard]] std::string_view header() const noexcept {
    return std::string_view(rows_).substr(0, header_bytes_);
  }
  [[nodiscard]] std::string_view state() const noexcept {
    return std::string_view(rows_).substr(header_bytes_);
  }
  /// The result that the rows say. nullopt: they are not those of a root that has ended.
  /// kCorruption if they cannot be read.
  [[nodiscard]] Result<std::optional<Completed>> decode(ProcedureId id) const;
  /// Adds to `batch` that the rows of `id` are deleted. `in_place`: they are in Space::kProcedure.
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
/// About what the rows of an ended root take.
[[nodiscard]] std::size_t bytes_of_rows(const Execution& root);

}  // namespace pv2
