// SPDX-License-Identifier: Apache-2.0
//
// CompletedResults: the results of roots that ended lately, by id, oldest first, as many and as
// large as the host allows in memory. What has to leave is handed out one by one; whether anybody
// else has it then is its owner's business. No verb looks at more than it is about.

#pragma once

#include <pv2/base/ids.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <list>
#include <optional>

#include "pv2/engine/procedure_result.h"

namespace pv2 {

/// A finished root whose result is in memory.
struct Completed {
  ProcedureResult result;
  Nonce nonce;
  bool audited = false;     ///< There are audit rows, to be deleted with it.
  bool in_place = false;    ///< Its rows are where live ones are.
  Duration ended_age{};     ///< How old the store was at its end.
  std::uint64_t bytes = 0;  ///< About what its rows take.
};

/// Guarded by the engine's state mutex.
class CompletedResults {
 public:
  /// The newest result stays, however large it is.
  CompletedResults(std::size_t count_max, std::size_t bytes_max)
      : count_max_(count_max), bytes_max_(bytes_max) {}

  /// The newest from now on. It is not there yet.
  void add(Completed completed);
  [[nodiscard]] const Completed* find(ProcedureId id) const;
  [[nodiscard]] bool contains(ProcedureId id) const { return by_id_.contains(id); }
  /// Whether it was there.
  bool erase(ProcedureId id);
  /// Removes and returns the oldest if there are more than may be, or they are too large.
  [[nodiscard]] std::optional<Completed> take_surplus();

  [[nodiscard]] std::size_t size() const noexcept { return by_id_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] auto begin() const noexcept { return by_age_.begin(); }
  [[nodiscard]] auto end() const noexcept { return by_age_.end(); }
  /// About what one of them takes.
  [[nodiscard]] static std::size_t bytes_of(const Completed& completed) noexcept;

 private:
  using Place = std::list<Completed>::iterator;
  Completed take(Place place);

  const std::size_t count_max_;
  const std::size_t bytes_max_;
  std::list<Completed> by_age_;  // oldest first
  boost::unordered_flat_map<ProcedureId, Place, std::hash<ProcedureId>> by_id_;
  std::size_t bytes_ = 0;
};

}  // namespace pv2
