// SPDX-License-Identifier: Apache-2.0
//
// TableDirectories: the directories of tables and regions, as the master writes them. The paths are
// in cluster_layout.h. Region (region.h) writes into a region's directory while it is open.
//
// Invariants:
// - Every file appears completely or not at all. A directory has many files: a crash leaves some of
//   them, and the same call again completes it. Each call may be repeated after any crash.
// - A descriptor is never absent once it was written: the new version is durable before the old
//   ones go.
// - Nothing that archive_*() is given is lost: a store file is in either place, and is durable in
//   the archive before its region's directory goes.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/region.h>
#include <pv2/procedures/table.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/stored_descriptor.h"

namespace pv2::cluster {

/// Thread-safe as long as two callers work on different tables. `files` outlives it.
class TableDirectories {
 public:
  TableDirectories(const FileTree& files, ClusterLayout layout)
      : files_(files), layout_(std::move(layout)) {}

  // Namespaces.
  Status make_namespace(std::string_view name) const;
  /// kFailedPrecondition: a table is in it. An absent one is OK.
  Status remove_namespace(std::string_view name) const;
  [[nodiscard]] Result<std::vector<std::string>> namespaces() const;

  // Tables.
  /// Makes the directory of the table hold exactly this: what is missing is made, what is right is
  /// left alone, what does not belong there is removed. For a table that is being created.
  Status write_layout(const TableDescriptor& descriptor,
                      const std::vector<RegionInfo>& regions) const;
  /// Writes a new version, unless the present one is the same. Makes the table's directory.
  Status write_descriptor(const TableDescriptor& descriptor) const;
  /// The highest version that is not damaged. kNotFound, kCorruption (all are damaged), or why a
  /// version cannot be read just now.
  [[nodiscard]] Result<TableDescriptor> read_descriptor(const TableName& table) const;
  /// As read_descriptor(); the answer also tells since when the table has had each family.
  [[nodiscard]] Result<StoredDescriptor> read_stored_descriptor(const TableName& table) const;
  /// Every directory of a region, also one that has nothing that says which region it is.
  [[nodiscard]] Result<std::vector<std::string>> region_ids(const TableName& table) const;
  /// Every directory of a table, also one without a descriptor yet.
  [[nodiscard]] Result<std::vector<TableName>> tables() const;
  /// Archives all regions, then removes the directory. An absent one is OK.
  Status archive_table(const TableName& table) const;

  // Regions.
  /// In order of the start key. A directory without RegionInfo is not complete and not listed.
  [[nodiscard]] Result<std::vector<RegionInfo>> regions(const TableName& table) const;
  Status make_region(const RegionInfo& region) const;
  /// The same for many, with a few syncs for all of them.
  Status make_regions(const std::vector<RegionInfo>& regions) const;
  /// Removes directories without archiving: for regions that never held data of their own.
  Status remove_regions(const TableName& table, const std::vector<std::string>& region_ids) const;
  /// Moves the store files to the archive, then removes the directories. Absent ones are OK. Takes
  /// a few syncs for all regions.
  Status archive_regions(const TableName& table, const std::vector<std::string>& region_ids) const;

  /// Makes the directories of the daughters of a closed region, with references to its files and
  /// its highest sequence. A daughter that was opened already is left alone.
  Status make_daughters(const RegionInfo& parent, const std::vector<RegionInfo>& daughters) const;
  /// As make_daughters() for a region that is made of closed, neighbouring ones.
  Status make_merged(const std::vector<RegionInfo>& parents, const RegionInfo& merged) const;

  /// Every write of the region up to this sequence is in its files.
  [[nodiscard]] Result<std::uint64_t> max_sequence(const RegionInfo& region) const;
  /// Raises that sequence, for a region that was never opened. Keeps a higher one.
  /// kFailedPrecondition: it was opened.
  Status raise_max_sequence(const RegionInfo& region, std::uint64_t sequence) const;
  /// Whether a log left writes that the region's files lack; then it must be opened before a split
  /// or a merge.
  [[nodiscard]] Result<bool> has_recovered_edits(const RegionInfo& region) const;
  [[nodiscard]] Result<bool> has_references(const RegionInfo& region) const;
  /// Which regions the files of this table refer to: source id -> ids of the regions that need it.
  [[nodiscard]] Result<std::map<std::string, std::set<std::string>>> references(
      const TableName& table) const;

 private:
  Status write_references(const std::vector<RegionInfo>& parents, const RegionInfo& child) const;
  [[nodiscard]] Result<StoredDescriptor> read_latest_descriptor(const TableName& table) const;
  [[nodiscard]] Result<std::vector<std::uint64_t>> descriptor_versions(
      const TableName& table) const;

  const FileTree& files_;
  const ClusterLayout layout_;
};

}  // namespace pv2::cluster
