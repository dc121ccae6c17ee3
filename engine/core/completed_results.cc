// SPDX-License-Identifier: Apache-2.0
//
// A list by age and a table by id that points into it.

#include "core/completed_results.h"

#include <pv2/base/assert.h>

#include <iterator>
#include <utility>

namespace pv2 {

std::size_t CompletedResults::bytes_of(const Completed& completed) noexcept {
  // The node, its entry in the table, and the overhead of the allocator.
  constexpr std::size_t kNode = sizeof(Completed) + 96;
  return kNode + completed.result.result.size() + completed.result.status.message().size();
}

void CompletedResults::add(Completed completed) {
  const ProcedureId id = completed.result.id;
  PV2_ASSERT(!contains(id), "a root ends once");
  PV2_ASSERT(id, "a result names its procedure");
  bytes_ += bytes_of(completed);
  by_age_.push_back(std::move(completed));
  by_id_.insert({id, std::prev(by_age_.end())});
  PV2_ASSERT(by_id_.size() == by_age_.size(), "every result in the list is in the table");
}

const Completed* CompletedResults::find(ProcedureId id) const {
  const Entry* const entry = by_id_.find(id);
  if (entry == nullptr) return nullptr;
  PV2_ASSERT(entry->place->result.id == id, "a result is found by its own id");
  return &*entry->place;
}

Completed CompletedResults::take(Place place) {
  Completed taken = std::move(*place);
  by_age_.erase(place);
  const std::size_t bytes = bytes_of(taken);
  PV2_ASSERT(bytes <= bytes_, "the bytes of a result that leaves memory were counted");
  bytes_ -= bytes;
  PV2_ASSERT(by_id_.size() == by_age_.size(), "every result in the table is in the list");
  PV2_ASSERT(!by_age_.empty() || bytes_ == 0, "without results no bytes are counted");
  return taken;
}

bool CompletedResults::erase(ProcedureId id) {
  const Entry* const entry = by_id_.find(id);
  if (entry == nullptr) return false;
  const Place place = entry->place;
  by_id_.erase(id);
  (void)take(place);
  return true;
}

std::optional<Completed> CompletedResults::take_surplus() {
  const bool surplus = by_id_.size() > count_max_ || (bytes_ > bytes_max_ && by_id_.size() > 1);
  if (!surplus || by_age_.empty()) return std::nullopt;
  const bool removed = by_id_.erase(by_age_.front().result.id);
  PV2_ASSERT(removed, "every result in the list is in the table");
  return take(by_age_.begin());
}

}  // namespace pv2
