// SPDX-License-Identifier: Apache-2.0
//
// TableDirectories: the table directories of the small cluster:
//
//     <root>/<namespace>/<table>/descriptor          one frame: the TableDescriptor
//     <root>/<namespace>/<table>/<region id>/region  one frame: the RegionInfo
//
// Every file appears completely or not at all, but a layout has many files: a crash leaves some of
// them, and the next write_layout() adds the rest. Thread-safe as long as two callers work on
// different tables.

#pragma once

#include <pv2/base/status.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "pv2/procedures/cluster_snapshot.h"
#include "pv2/procedures/region.h"
#include "pv2/procedures/table.h"

namespace pv2 {

class TableDirectories {
 public:
  /// `root` must exist.
  explicit TableDirectories(std::filesystem::path root) : root_(std::move(root)) {}

  /// See TableFiles::write_layout(). Calls `made` after each directory or file that it made.
  Status write_layout(const TableDescriptor& descriptor, const std::vector<RegionInfo>& regions,
                      const std::function<void()>& made) const;

  // The other calls of TableFiles. The regions of this cluster hold no data, so there is nothing to
  // archive and nothing to refer to.
  Status make_namespace(const std::string& name) const;
  Status remove_namespace(const std::string& name) const;
  Status write_descriptor(const TableDescriptor& descriptor) const;
  Status remove_table(const TableName& name) const;
  Status make_regions(const std::vector<RegionInfo>& regions) const;
  Status remove_regions(const std::vector<RegionInfo>& regions) const;
  [[nodiscard]] Result<std::vector<std::string>> namespaces() const;

  [[nodiscard]] Result<TableDescriptor> read_descriptor(const TableName& name) const;

  /// Every table directory with a descriptor, in order of name.
  [[nodiscard]] Result<std::vector<ClusterSnapshot::Directory>> list() const;

 private:
  [[nodiscard]] std::filesystem::path directory(const TableName& name) const;

  std::filesystem::path root_;
};

}  // namespace pv2
