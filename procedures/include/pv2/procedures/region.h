// SPDX-License-Identifier: Apache-2.0
//
// What a region is to the cluster: a range of keys of one table with its own id, and its row in the
// catalogue, which says where the region is. The catalogue decides which change of a row may follow
// which (catalogue_state.h).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pv2/procedures/server.h"
#include "pv2/procedures/table.h"

namespace pv2 {

/// One range of keys of one table. A plain value.
struct RegionInfo {
  TableName table;
  std::string id;         ///< Unique in the cluster: 16 hexadecimal digits.
  std::string start_key;  ///< Inclusive; empty: from the beginning.
  std::string end_key;    ///< Exclusive; empty: to the end.

  void fields(auto& f) {
    f(1, "table", table);
    f(2, "id", id);
    f(3, "start_key", start_key);
    f(4, "end_key", end_key);
  }
  friend bool operator==(const RegionInfo&, const RegionInfo&) = default;
};

/// The ids of regions from `first` on, and before `end`. Empty: without that bound. A plain value.
struct RegionIds {
  std::string first;
  std::string end;

  void fields(auto& f) {
    f(1, "first", first);
    f(2, "end", end);
  }
};

/// "region 0123456789abcdef of table default:t", for messages.
[[nodiscard]] std::string to_string(const RegionInfo& region);

/// Persisted.
enum class RegionState : std::uint8_t {
  kClosed = 1,
  kOpening = 2,
  kOpen = 3,
  kClosing = 4,
  kAbnormallyClosed = 5,  ///< Its server crashed and is recovered; the row still names that server.
  kSplit = 6,             ///< Two daughters have taken its place. It is never opened again.
  kFailedOpen = 7,        ///< Several servers have tried to open it, and could not.
};

[[nodiscard]] std::string_view to_string(RegionState state) noexcept;
/// Whether a region in this state is, is being opened, or may have left edits, on the server of its
/// row. Otherwise it is nowhere: no server has it, and none was told to open it.
[[nodiscard]] bool is_placed(RegionState state) noexcept;

/// One region in the catalogue. A plain value.
struct RegionRow {
  RegionInfo region;
  RegionState state = RegionState::kClosed;
  /// Where the region is, is being opened, or was last. Empty: it was never opened.
  ServerName server;
  std::uint64_t open_sequence = 0;  ///< Grows with every opening; 0: never opened.

  void fields(auto& f) {
    f(1, "region", region);
    f(2, "state", state);
    f(3, "server", server);
    f(4, "open_sequence", open_sequence);
  }
  friend bool operator==(const RegionRow&, const RegionRow&) = default;
};

/// The one region of the catalogue's own table (is_meta()).
[[nodiscard]] RegionInfo meta_region();

/// Divides the key space of `table` at `split_keys` (in any order, without repeats) into regions.
/// The ids follow from the table, the start keys and `salt`, so the same arguments give the same
/// regions.
[[nodiscard]] std::vector<RegionInfo> regions_of(const TableName& table,
                                                 std::vector<std::string> split_keys,
                                                 std::uint64_t salt);

/// `regions` - 1 keys of two bytes that divide the key space evenly. At most 65536 regions.
[[nodiscard]] std::vector<std::string> even_split_keys(std::size_t regions);

}  // namespace pv2
