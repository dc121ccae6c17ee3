// SPDX-License-Identifier: Apache-2.0
//
// CommitNarrator: says of each commit of a life what it was ("step CHARGE of shop.PlaceOrder,
// procedure 1"), from its rows and from what the executor lists around it. It reads nothing of a
// record but the id in its key. What it cannot tell it calls by its number alone.

#pragma once

#include <pv2/engine/procedure_executor.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pv2/testing/fault_store.h"

namespace pv2::testing {

/// Owned by one thread. Both outlive it.
class CommitNarrator {
 public:
  CommitNarrator(const ProcedureExecutor& executor, const ProcedureRegistry& types)
      : executor_(executor), types_(types) {}

  /// A commit begins; what is listed now is what was before it.
  void note(std::size_t n, const RowBatch& batch);
  /// What was noted is published.
  void settle();
  /// What commit n was, or "" when that is not known.
  [[nodiscard]] std::string words(std::size_t n) const;
  /// Every commit that was noted, by number.
  [[nodiscard]] const std::map<std::size_t, std::string>& all() const noexcept { return words_; }

 private:
  [[nodiscard]] std::string step_name(const std::string& type, std::uint32_t step) const;

  const ProcedureExecutor& executor_;
  const ProcedureRegistry& types_;
  std::map<std::size_t, std::string> words_;
  std::vector<std::pair<std::size_t, ProcedureInfo>> undoing_;
};

}  // namespace pv2::testing
