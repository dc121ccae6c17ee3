// SPDX-License-Identifier: Apache-2.0
//
// RowChanges: the changes that one run of a step makes to the host's rows. They become part of the
// run's record or are forgotten with it. A change that the step may not make, or that does not fit,
// is left out; refused() then says why the step has to fail.

#pragma once

#include <pv2/base/status.h>
#include <pv2/store/commit_request.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace pv2 {

struct StepFrame;

/// Owned by the worker that runs the step.
class RowChanges {
 public:
  explicit RowChanges(const StepFrame& frame) : frame_(frame) {}

  void put(std::string_view key, std::string_view value);
  void erase(std::string_view key);
  /// The row as this run sees it: its own change if it made one, else what the store has.
  [[nodiscard]] Result<std::optional<std::string>> get(std::string_view key) const;

  /// OK, or why the first refused change was refused.
  [[nodiscard]] const Status& refused() const noexcept { return refused_; }
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  [[nodiscard]] std::size_t operations() const noexcept { return rows_.operations(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return rows_.bytes(); }
  void append_to(RowBatch& batch) const;
  /// Forgets the changes. refused() keeps its answer.
  void clear() noexcept { rows_.clear(); }

 private:
  bool may_write(std::string_view row);
  bool fits(std::string_view row, std::string_view value);

  const StepFrame& frame_;
  RowBatch rows_;
  Status refused_;
};

}  // namespace pv2
