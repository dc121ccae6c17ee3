// SPDX-License-Identifier: Apache-2.0
//
// The list of store files: one frame in a file that is replaced as a whole.

#include "storage/region_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "storage/framed_fields.h"

namespace pv2::cluster {
namespace {

// How often a reader looks again when the list that it saw is replaced by a newer one.
constexpr int kLooks = 4;

// The openings that have a list or a claim, the latest first.
Result<std::vector<std::uint64_t>> openings(const FileTree& files, const ClusterLayout& layout,
                                            const TableName& table, std::string_view region_id) {
  const Result<std::vector<std::string>> names = files.list(layout.region(table, region_id));
  if (!names.ok()) return names.status();
  std::vector<std::uint64_t> found;
  for (const std::string& name : *names) {
    if (const auto opening = ClusterLayout::parse_region_files(name)) found.push_back(*opening);
  }
  std::ranges::sort(found, std::greater());
  return found;
}

Status check_latest(const FileTree& files, const ClusterLayout& layout, const TableName& table,
                    std::string_view region_id, std::uint64_t opening) {
  const auto found = openings(files, layout, table, region_id);
  if (!found.ok()) return found.status();
  if (found->empty() || found->front() <= opening) return {};
  return {StatusCode::kFenced, fmt::format("region {} was opened again: opening {} is over by {}",
                                           region_id, opening, found->front())};
}

Result<RegionFiles> read_list(const FileTree& files, const std::string& path) {
  const Result<std::string> bytes = files.read(path);
  if (!bytes.ok()) return bytes.status();
  RegionFiles list;
  if (Status bad = decode_framed(*bytes, list); !bad.ok()) return bad.with_context(path);
  return list;
}

// The first list that is no claim. kNotFound: one of the lists was removed meanwhile.
Result<RegionFiles> read_latest(const FileTree& files, const ClusterLayout& layout,
                                const TableName& table, std::string_view region_id) {
  const auto found = openings(files, layout, table, region_id);
  if (!found.ok()) return found.status();
  for (const std::uint64_t opening : *found) {
    Result<RegionFiles> list = read_list(files, layout.region_files(table, region_id, opening));
    if (!list.ok() || !list->is_claim) return list;
  }
  return RegionFiles();
}

}  // namespace

bool RegionFiles::has_references(std::string_view region_id) const {
  return std::ranges::any_of(
      files, [&](const StoreFileEntry& file) { return file.region_id != region_id; });
}

Result<RegionFiles> read_region_files(const FileTree& files, const ClusterLayout& layout,
                                      const TableName& table, std::string_view region_id) {
  for (int look = 0; look < kLooks; ++look) {
    Result<RegionFiles> list = read_latest(files, layout, table, region_id);
    // A list is removed only after a newer one is there.
    if (list.status().code() != StatusCode::kNotFound) return list;
  }
  return Status(StatusCode::kUnavailable,
                fmt::format("the files of region {} change all the time", region_id));
}

Status write_region_files(const FileTree& files, const ClusterLayout& layout,
                          const TableName& table, std::string_view region_id, RegionFiles list) {
  if (Status bad = check_latest(files, layout, table, region_id, list.opening); !bad.ok())
    return bad;
  const std::string path = layout.region_files(table, region_id, list.opening);
  if (Status bad = files.write(path, encode_framed(list)); !bad.ok()) return bad;
  // A later opening claims first and reads this list then: see the invariants.
  return check_latest(files, layout, table, region_id, list.opening);
}

}  // namespace pv2::cluster
