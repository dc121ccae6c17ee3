// SPDX-License-Identifier: Apache-2.0
//
// RegionFiles: the list of the store files of a region that count, in a file `files.<opening>` of
// the region's directory. Every change of the files is one write of the list: a flush adds a file,
// a compaction replaces files, a split gives each daughter a list of references to the files of its
// parent.
//
// Invariants:
// - The list with the highest opening counts; the others are leftovers. The master gives each order
//   to open a region a higher opening, so what a server does that lost the region long ago is in a
//   list that nobody reads.
// - An opening first makes a claim, which is a list that does not count, and then reads the list
//   that does. An earlier opening looks for claims after it wrote its list. So one of the two sees
//   the other: either the new opening reads the last list of the old one, or the old one learns
//   that it is over, and neither removes files nor reports a flush.
// - A store file that no list names does not count. What it has is also in a log, or in the files
//   that it was merged from.
// - Every write up to `max_sequence` is in the files. No list of an opening takes back what an
//   earlier one has: a log may be dropped as soon as a list with its entries can be read, also if
//   the writer of that list takes its write for failed.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/table.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"

namespace pv2::cluster {

/// One store file of the list. Persisted.
struct StoreFileEntry {
  std::string name;
  /// The region that wrote the file: for a reference another one. It is in that region's directory,
  /// or in the archive.
  std::string region_id{};
  std::uint64_t bytes = 0;
  /// The version of the table's descriptor that it was written under. Its cells of families that
  /// came later do not count (stored_descriptor.h).
  std::uint64_t descriptor = 0;
  /// Of a reference: the rows that the regions had in common through which it came. A region that
  /// is merged from halves of one region has both halves' references to its files, and what one of
  /// them has compacted away must not come back through the other. `end_key` empty: to the end.
  std::string start_key{};
  std::string end_key{};

  void fields(auto& f) {
    f(1, "name", name);
    f(2, "region_id", region_id);
    f(3, "bytes", bytes);
    f(4, "descriptor", descriptor);
    f(5, "start_key", start_key);
    f(6, "end_key", end_key);
  }
  friend bool operator==(const StoreFileEntry&, const StoreFileEntry&) = default;
};

/// Persisted. Without a file: a region that was never opened.
struct RegionFiles {
  std::uint64_t opening = 0;  ///< 0: written by the master for a region that was never opened.
  std::uint64_t max_sequence = 0;
  std::uint64_t next_number = 1;  ///< Of the next store file of this opening.
  std::uint64_t descriptor = 0;   ///< The version of the table's descriptor at this opening.
  std::vector<StoreFileEntry> files{};
  bool is_claim = false;

  void fields(auto& f) {
    f(1, "opening", opening);
    f(2, "max_sequence", max_sequence);
    f(3, "next_number", next_number);
    f(4, "descriptor", descriptor);
    f(5, "files", files);
    f(6, "is_claim", is_claim);
  }
  friend bool operator==(const RegionFiles&, const RegionFiles&) = default;

  [[nodiscard]] bool has_references(std::string_view region_id) const;
};

/// The list that counts. A region without a list has an empty one. kCorruption: it is damaged.
[[nodiscard]] Result<RegionFiles> read_region_files(const FileTree& files,
                                                    const ClusterLayout& layout,
                                                    const TableName& table,
                                                    std::string_view region_id);
/// Makes `list` the one that counts (or a claim). kFenced: there is one with a higher opening, or
/// a claim to one.
Status write_region_files(const FileTree& files, const ClusterLayout& layout,
                          const TableName& table, std::string_view region_id, RegionFiles list);

}  // namespace pv2::cluster
