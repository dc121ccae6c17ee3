// SPDX-License-Identifier: Apache-2.0
//
// CommitNarrator: describes each commit of a life in words ("step CHARGE of shop.PlaceOrder,
// procedure 1"), from the rows of the commit and from what the executor lists before and after it.
// Of a record it reads only the id in the key. A commit that it cannot describe has only its
// number.

#pragma once

#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/procedure_info.h>
#include <pv2/engine/procedure_registry.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pv2/testing/fault_store.h"

namespace pv2::testing {

/// Owned by one thread. The executor and the registry must outlive it.
class CommitNarrator {
 public:
  CommitNarrator(const ProcedureExecutor& executor, const ProcedureRegistry& types)
      : executor_(executor), types_(types) {}

  /// A commit begins; the executor still lists the state before the commit.
  void note(std::size_t n, const RowBatch& batch);
  /// The commits that were noted are published.
  void settle();
  /// A description of commit n, or "" when there is none.
  [[nodiscard]] std::string words(std::size_t n) const;
  /// The description of every commit that was noted, by number.
  [[nodiscard]] const std::map<std::size_t, std::string>& all() const noexcept { return words_; }

 private:
  [[nodiscard]] std::string step_name(const std::string& type, std::uint32_t step) const;

  const ProcedureExecutor& executor_;
  const ProcedureRegistry& types_;
  std::map<std::size_t, std::string> words_;
  std::vector<std::pair<std::size_t, ProcedureInfo>> undoing_;
};

}  // namespace pv2::testing
