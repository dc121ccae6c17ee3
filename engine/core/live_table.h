// SPDX-License-Identifier: Apache-2.0
//
// LiveTable: the live executions by id. In addition to the hash table it keeps the number of live
// executions in each block of ids. So they can be visited in order of id, a bounded piece at a
// time, without an ordered index, which would cost every submission time. It owns no execution.

#pragma once

#include <pv2/base/assert.h>
#include <pv2/base/ids.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <map>

#include "model/looks.h"

namespace pv2 {

struct Execution;

/// Guarded by the engine's state mutex.
class LiveTable {
  using Map = boost::unordered_flat_map<ProcedureId, Execution*, std::hash<ProcedureId>>;

 public:
  void emplace(ProcedureId id, Execution* execution) {
    PV2_ASSERT(id && execution != nullptr, "a live procedure has an id");
    const bool is_new = map_.emplace(id, execution).second;
    PV2_ASSERT(is_new, "an id is in the table once");
    ++count_of(id);
  }
  void erase(ProcedureId id) {
    if (map_.erase(id) == 0) return;
    PV2_ASSERT(count_of(id) > 0, "a live procedure is counted in its block");
    if (--count_of(id) == 0) {
      blocks_.erase(block_of(id));
      last_ = nullptr;
    }
    PV2_ASSERT(map_.empty() == blocks_.empty(),
               "there are blocks exactly if there are live procedures");
  }
  void reserve(std::size_t count) { map_.reserve(count); }
  void clear() {
    map_.clear();
    blocks_.clear();
    last_ = nullptr;
  }
  [[nodiscard]] Map::const_iterator find(ProcedureId id) const { return map_.find(id); }
  [[nodiscard]] Map::const_iterator begin() const { return map_.begin(); }
  [[nodiscard]] Map::const_iterator end() const { return map_.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return map_.size(); }

  /// Visits the executions with ids above `after`, in order, until `visit` returns false or
  /// `ids_max` ids were looked up. Returns the id to go on after, or 0 when all were visited.
  template <class Visit>
  ProcedureId visit_after(ProcedureId after, std::size_t ids_max, Visit&& visit) const {
    std::uint64_t id = after.value + 1;
    for (std::size_t looked_at = 0; looked_at < ids_max; ++looked_at, ++id) {
      if (const auto block = blocks_.find(block_of(ProcedureId{id})); block == blocks_.end()) {
        const auto next = blocks_.upper_bound(block_of(ProcedureId{id}));
        if (next == blocks_.end()) return ProcedureId();
        id = next->first * kBlock;
      }
      const auto at = map_.find(ProcedureId{id});
      if (at != map_.end()) Looks::one();
      if (at != map_.end() && !visit(*at->second)) return ProcedureId{id};
    }
    return ProcedureId{id - 1};
  }

 private:
  // Ids are issued in order, so a young block is dense. 1024: that many lookups take about 30 us.
  static constexpr std::uint64_t kBlock = 1024;
  static std::uint64_t block_of(ProcedureId id) noexcept { return id.value / kBlock; }

  // Most executions are inserted into the same block as the one before, so that block is kept.
  std::uint32_t& count_of(ProcedureId id) {
    if (last_ == nullptr || last_block_ != block_of(id)) {
      last_block_ = block_of(id);
      last_ = &blocks_[last_block_];
    }
    return *last_;
  }

  Map map_;
  // How many executions are live in each block; never 0.
  std::map<std::uint64_t, std::uint32_t> blocks_;
  std::uint64_t last_block_ = 0;
  std::uint32_t* last_ = nullptr;  // the count of last_block_
};

}  // namespace pv2
