// SPDX-License-Identifier: Apache-2.0
//
// How a key space is divided into regions, and the ids of the regions. Nothing here can fail.

#include "pv2/procedures/region.h"

#include <fmt/format.h>

#include <algorithm>

#include "stable_hash.h"

namespace pv2 {

std::string_view to_string(RegionState state) noexcept {
  switch (state) {
    case RegionState::kClosed:
      return "CLOSED";
    case RegionState::kOpening:
      return "OPENING";
    case RegionState::kOpen:
      return "OPEN";
    case RegionState::kClosing:
      return "CLOSING";
    case RegionState::kAbnormallyClosed:
      return "ABNORMALLY_CLOSED";
    case RegionState::kSplit:
      return "SPLIT";
    case RegionState::kFailedOpen:
      return "FAILED_OPEN";
  }
  return "UNKNOWN";
}

bool is_placed(RegionState state) noexcept {
  switch (state) {
    case RegionState::kOpening:
    case RegionState::kOpen:
    case RegionState::kClosing:
    case RegionState::kAbnormallyClosed:
      return true;
    case RegionState::kClosed:
    case RegionState::kSplit:
    case RegionState::kFailedOpen:
      return false;
  }
  return false;
}

std::string to_string(const RegionInfo& region) {
  return "region " + region.id + " of table " + to_string(region.table);
}

RegionInfo meta_region() { return {meta_table(), "0000000000000001", "", ""}; }

std::vector<RegionInfo> regions_of(const TableName& table, std::vector<std::string> split_keys,
                                   std::uint64_t salt) {
  std::ranges::sort(split_keys);
  std::vector<RegionInfo> regions;
  std::string start;
  // The salt is a part of the text. Mixed into the beginning of the hash, it would cancel out with
  // the first letter: "m:t" made by procedure 13 would have the regions of "n:t" made by 14.
  const std::string end_of_text = '\0' + std::to_string(salt);
  for (std::size_t i = 0; i <= split_keys.size(); ++i) {
    std::string end = i < split_keys.size() ? std::move(split_keys[i]) : std::string();
    const std::uint64_t id = internal::stable_hash(to_string(table) + '\0' + start + end_of_text);
    regions.push_back({table, fmt::format("{:016x}", id), std::move(start), end});
    start = std::move(end);
  }
  return regions;
}

std::vector<std::string> even_split_keys(std::size_t regions) {
  constexpr std::size_t kKeys = 65536;  // two bytes have this many values
  regions = std::clamp<std::size_t>(regions, 1, kKeys);
  std::vector<std::string> keys;
  for (std::size_t i = 1; i < regions; ++i) {
    const std::size_t at = i * kKeys / regions;
    keys.push_back({static_cast<char>(at >> 8), static_cast<char>(at & 0xFF)});
  }
  return keys;
}

}  // namespace pv2
