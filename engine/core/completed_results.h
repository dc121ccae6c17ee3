// SPDX-License-Identifier: Apache-2.0
//
// CompletedResults: the results of roots that ended lately, found by id and ordered by age. The
// host limits their number and their bytes. A result that has to leave is handed to the caller,
// which knows whether the store still has it. Every function takes constant time.

#pragma once

#include <pv2/base/block_cache.h>
#include <pv2/base/extendible_set.h>
#include <pv2/base/ids.h>

#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <functional>
#include <list>
#include <optional>

#include "model/identity.h"
#include "model/on_demand.h"
#include "pv2/engine/procedure_result.h"

namespace pv2 {

/// A finished root whose result is in memory.
struct Completed {
  ProcedureResult result;
  OnDemand<NonceUse> nonce_use;  ///< Of a root that was submitted with a nonce.
  bool audited = false;          ///< There are audit rows, which are deleted with it.
  bool in_place = false;         ///< Its rows are in Space::kProcedure.
  Duration ended_age{};          ///< The age of the store when it ended.
  std::uint64_t bytes = 0;       ///< The size of its rows, roughly.

  [[nodiscard]] const Nonce& nonce() const noexcept { return nonce_use->nonce; }
};

/// Guarded by the engine's state mutex.
class CompletedResults {
 public:
  /// The newest result stays, however large it is.
  CompletedResults(std::size_t count_max, std::size_t bytes_max)
      : count_max_(count_max), bytes_max_(bytes_max) {}

  /// Adds the newest result. Its id must not be there yet.
  void add(Completed completed);
  [[nodiscard]] const Completed* find(ProcedureId id) const;
  [[nodiscard]] bool contains(ProcedureId id) const { return by_id_.find(id) != nullptr; }
  /// False: there is no such result.
  bool erase(ProcedureId id);
  /// Removes and returns the oldest result if there are too many results or too many bytes.
  [[nodiscard]] std::optional<Completed> take_surplus();

  [[nodiscard]] std::size_t size() const noexcept { return by_id_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] auto begin() const noexcept { return by_age_.begin(); }
  [[nodiscard]] auto end() const noexcept { return by_age_.end(); }
  /// The memory that one result takes, roughly.
  [[nodiscard]] static std::size_t bytes_of(const Completed& completed) noexcept;

 private:
  using ByAge = std::list<Completed, BlockAllocator<Completed>>;
  using Place = ByAge::iterator;
  struct Entry {
    ProcedureId id;
    Place place;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(ProcedureId id) const noexcept { return std::hash<ProcedureId>()(id); }
    std::size_t operator()(const Entry& entry) const noexcept { return (*this)(entry.id); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Entry& one, const Entry& other) const noexcept {
      return one.id == other.id;
    }
    bool operator()(ProcedureId id, const Entry& entry) const noexcept { return id == entry.id; }
    bool operator()(const Entry& entry, ProcedureId id) const noexcept { return id == entry.id; }
  };
  Completed take(Place place);

  const std::size_t count_max_;
  const std::size_t bytes_max_;
  ByAge by_age_;  // oldest first
  ExtendibleSet<boost::unordered_flat_set<Entry, Hash, Equal>> by_id_;
  std::size_t bytes_ = 0;
};

}  // namespace pv2
