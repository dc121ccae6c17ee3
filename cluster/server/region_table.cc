// SPDX-License-Identifier: Apache-2.0
//
// A map, and the count of calls of each region in it.

#include "server/region_table.h"

#include <pv2/base/assert.h>

#include <utility>

namespace pv2::cluster {

void HostedRegion::leave() {
  PV2_ASSERT(calls_ > 0, "a call leaves a region once");
  if (--calls_ != 0 || !idle_) return;
  std::exchange(idle_, nullptr)();
}

void HostedRegion::when_idle(std::function<void()> idle) {
  PV2_ASSERT(!idle_, "a region is closed once");
  if (calls_ == 0) return idle();
  idle_ = std::move(idle);
}

RegionTable::~RegionTable() {
  for (const Entry& entry : open_regions()) entry->region->abandon();
}

void RegionTable::add(Entry entry) {
  const bool is_new = entries_.emplace(entry->info.id, entry).second;
  PV2_ASSERT(is_new, "a region is on a server once");
}

void RegionTable::remove(const Entry& entry) {
  const auto found = entries_.find(entry->info.id);
  if (found != entries_.end() && found->second == entry) entries_.erase(found);
}

RegionTable::Entry RegionTable::find(const std::string& region_id) const {
  const auto found = entries_.find(region_id);
  return found == entries_.end() ? nullptr : found->second;
}

Result<RegionTable::Entry> RegionTable::find_serving(const std::string& region_id) const {
  Entry entry = find(region_id);
  if (entry == nullptr || entry->state == HostedState::kClosing) {
    return Status(StatusCode::kNotFound, "region " + region_id + " is not on this server");
  }
  if (entry->state != HostedState::kServing) {
    return Status(StatusCode::kUnavailable, "region " + region_id + " is being opened");
  }
  return entry;
}

std::vector<RegionTable::Entry> RegionTable::open_regions() const {
  std::vector<Entry> open;
  for (const auto& [id, entry] : entries_) {
    if (entry->region != nullptr) open.push_back(entry);
  }
  return open;
}

std::vector<RegionStatus> RegionTable::status() const {
  std::vector<RegionStatus> all;
  for (const auto& [id, entry] : entries_) {
    const Region* const region = entry->region.get();
    all.push_back({.region = entry->info,
                   .sequence = entry->sequence,
                   .serves = entry->state == HostedState::kServing,
                   .bytes = region ? region->file_bytes() + region->memory_bytes() : 0});
  }
  return all;
}

std::size_t RegionTable::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [id, entry] : entries_) {
    if (entry->region != nullptr) bytes += entry->region->memory_bytes();
  }
  return bytes;
}

}  // namespace pv2::cluster
