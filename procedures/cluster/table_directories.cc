// SPDX-License-Identifier: Apache-2.0
//
// Writes and reads table directories. Names come from procedures that have checked them: no
// separator, no leading dot.

#include "cluster/table_directories.h"

#include <pv2/base/fields.h>
#include <pv2/base/frame.h>

#include <algorithm>
#include <set>

#include "cluster/disk.h"

namespace pv2 {
namespace {

namespace fs = std::filesystem;

template <class T>
std::string framed(T value) {
  std::string bytes;
  FrameWriter frame(bytes);
  encode_fields(value, FieldSelection::kAll, bytes);
  frame.finish();
  return bytes;
}

/// Leaves a file alone that already holds these bytes; otherwise writes it and calls `made`.
Status ensure_file(const fs::path& path, const std::string& bytes,
                   const std::function<void()>& made) {
  const Result<std::string> there = internal::read_file(path);
  if (there.ok() && *there == bytes) return {};
  if (Status bad = internal::write_file(path, bytes); !bad.ok()) return bad;
  made();
  return {};
}

/// Removes a directory with everything in it; an absent one is OK.
Status remove_directory(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error)
    return {StatusCode::kIoError, "cannot remove " + path.string() + ": " + error.message()};
  return fs::exists(path.parent_path()) ? internal::sync_directory(path.parent_path()) : Status();
}

std::vector<fs::path> subdirectories(const fs::path& path) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.is_directory()) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

fs::path TableDirectories::directory(const TableName& name) const {
  return root_ / name.name_space / name.table;
}

Status TableDirectories::write_layout(const TableDescriptor& descriptor,
                                      const std::vector<RegionInfo>& regions,
                                      const std::function<void()>& made) const {
  const fs::path table = directory(descriptor.name);
  if (Status bad = internal::make_directory(table.parent_path()); !bad.ok()) return bad;
  if (Status bad = internal::make_directory(table); !bad.ok()) return bad;
  if (Status bad = ensure_file(table / "descriptor", framed(descriptor), made); !bad.ok())
    return bad;

  std::set<std::string> wanted;
  for (const RegionInfo& region : regions) {
    const fs::path folder = table / region.id;
    if (Status bad = internal::make_directory(folder); !bad.ok()) return bad;
    if (Status bad = ensure_file(folder / "region", framed(region), made); !bad.ok()) return bad;
    wanted.insert(region.id);
  }
  for (const fs::path& folder : subdirectories(table)) {
    if (wanted.contains(folder.filename())) continue;
    if (Status bad = remove_directory(folder); !bad.ok()) return bad;
  }
  return {};
}

Status TableDirectories::make_namespace(const std::string& name) const {
  return internal::make_directory(root_ / name);
}

Status TableDirectories::remove_namespace(const std::string& name) const {
  if (!subdirectories(root_ / name).empty()) {
    return {StatusCode::kFailedPrecondition,
            "the directory of namespace " + name + " has tables in it"};
  }
  return remove_directory(root_ / name);
}

Status TableDirectories::write_descriptor(const TableDescriptor& descriptor) const {
  return ensure_file(directory(descriptor.name) / "descriptor", framed(descriptor), [] {});
}

Status TableDirectories::remove_table(const TableName& name) const {
  return remove_directory(directory(name));
}

Status TableDirectories::make_regions(const std::vector<RegionInfo>& regions) const {
  for (const RegionInfo& region : regions) {
    const fs::path folder = directory(region.table) / region.id;
    if (Status bad = internal::make_directory(folder); !bad.ok()) return bad;
    if (Status bad = ensure_file(folder / "region", framed(region), [] {}); !bad.ok()) return bad;
  }
  return {};
}

Status TableDirectories::remove_regions(const std::vector<RegionInfo>& regions) const {
  for (const RegionInfo& region : regions) {
    const Status removed = remove_directory(directory(region.table) / region.id);
    if (!removed.ok()) return removed;
  }
  return {};
}

Result<std::vector<std::string>> TableDirectories::namespaces() const {
  std::vector<std::string> names;
  for (const fs::path& name_space : subdirectories(root_)) {
    names.push_back(name_space.filename().string());
  }
  return names;
}

Result<TableDescriptor> TableDirectories::read_descriptor(const TableName& name) const {
  const fs::path path = directory(name) / "descriptor";
  Result<std::string> bytes = internal::read_file(path);
  if (!bytes.ok()) return bytes.status();
  std::string_view input = *bytes;
  const auto frame = read_frame(input);
  if (!frame) return Status(StatusCode::kCorruption, path.string() + " is damaged");
  TableDescriptor descriptor;
  if (Status bad = decode_fields(descriptor, FieldSelection::kAll, *frame); !bad.ok()) return bad;
  return descriptor;
}

Result<std::vector<ClusterSnapshot::Directory>> TableDirectories::list() const {
  std::vector<ClusterSnapshot::Directory> found;
  for (const fs::path& name_space : subdirectories(root_)) {
    for (const fs::path& table : subdirectories(name_space)) {
      Result<TableDescriptor> descriptor =
          read_descriptor({name_space.filename().string(), table.filename().string()});
      // A directory without a descriptor is still being made.
      if (descriptor.status().code() == StatusCode::kNotFound) continue;
      if (!descriptor.ok()) return descriptor.status();
      found.push_back({std::move(*descriptor), {}});
      for (const fs::path& region : subdirectories(table)) {
        if (fs::exists(region / "region")) found.back().regions.push_back(region.filename());
      }
    }
  }
  return found;
}

}  // namespace pv2
