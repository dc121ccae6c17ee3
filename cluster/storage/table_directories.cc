// SPDX-License-Identifier: Apache-2.0
//
// Namespaces, tables and descriptors. Regions are in region_directories.cc.

#include "storage/table_directories.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace pv2::cluster {
namespace {

// How often the versions of a descriptor may change while it is read.
constexpr int kDescriptorLooks = 3;

}  // namespace

Status TableDirectories::make_namespace(std::string_view name) const {
  return files_.make_directories(layout_.name_space(name));
}

Status TableDirectories::remove_namespace(std::string_view name) const {
  const std::string directory = layout_.name_space(name);
  const Result<std::vector<std::string>> tables = files_.list(directory);
  if (!tables.ok()) return tables.status();
  if (!tables->empty())
    return {StatusCode::kFailedPrecondition,
            directory + " has table " + ClusterLayout::decode_name(tables->front())};
  return files_.remove_tree(directory);
}

Result<std::vector<std::string>> TableDirectories::namespaces() const {
  Result<std::vector<std::string>> names = files_.list(layout_.data());
  if (!names.ok()) return names;
  for (std::string& name : *names) name = ClusterLayout::decode_name(name);
  return names;
}

Result<std::vector<TableName>> TableDirectories::tables() const {
  const Result<std::vector<std::string>> spaces = namespaces();
  if (!spaces.ok()) return spaces.status();
  std::vector<TableName> found;
  for (const std::string& space : *spaces) {
    const Result<std::vector<std::string>> names = files_.list(layout_.name_space(space));
    if (!names.ok()) return names.status();
    for (const std::string& name : *names)
      found.push_back({space, ClusterLayout::decode_name(name)});
  }
  return found;
}

Status TableDirectories::write_layout(const TableDescriptor& descriptor,
                                      const std::vector<RegionInfo>& regions) const {
  if (Status bad = write_descriptor(descriptor); !bad.ok()) return bad;
  if (Status bad = make_regions(regions); !bad.ok()) return bad;
  Result<std::vector<std::string>> others = region_ids(descriptor.name);
  if (!others.ok()) return others.status();
  std::erase_if(*others, [&](const std::string& id) {
    return std::ranges::find(regions, id, &RegionInfo::id) != regions.end();
  });
  return remove_regions(descriptor.name, *others);
}

Result<std::vector<std::uint64_t>> TableDirectories::descriptor_versions(
    const TableName& table) const {
  const Result<std::vector<std::string>> names = files_.list(layout_.descriptors(table));
  if (!names.ok()) return names.status();
  std::vector<std::uint64_t> versions;
  for (const std::string& name : *names) {
    if (const auto version = ClusterLayout::parse_descriptor(name)) versions.push_back(*version);
  }
  std::ranges::sort(versions, std::greater());
  return versions;
}

Status TableDirectories::write_descriptor(const TableDescriptor& descriptor) const {
  const TableName& table = descriptor.name;
  if (Status bad = files_.make_directories(layout_.descriptors(table)); !bad.ok()) return bad;
  const Result<std::vector<std::uint64_t>> versions = descriptor_versions(table);
  if (!versions.ok()) return versions.status();

  std::uint64_t latest = versions->empty() ? 0 : versions->front();
  std::optional<StoredDescriptor> before;
  if (latest > 0) {
    Result<StoredDescriptor> stored = read_stored_descriptor(table);
    if (stored.ok())
      before = *std::move(stored);
    else if (stored.status().code() != StatusCode::kCorruption)
      return stored.status();
  }
  const bool is_present = before && before->version == latest && before->descriptor == descriptor;
  if (!is_present) {
    const bool is_first = latest == 0;
    ++latest;
    const std::string bytes =
        encode_descriptor(next_descriptor(before, descriptor, latest, is_first));
    if (Status bad = files_.write(layout_.descriptor(table, latest), bytes); !bad.ok()) return bad;
  } else if (Status bad = files_.sync_directory(layout_.descriptors(table)); !bad.ok()) {
    return bad;  // an earlier call may have died between the rename and the sync
  }
  for (const std::uint64_t version : *versions) {
    if (version == latest) continue;
    if (Status bad = files_.remove_file(layout_.descriptor(table, version)); !bad.ok()) return bad;
  }
  return {};
}

Result<TableDescriptor> TableDirectories::read_descriptor(const TableName& table) const {
  Result<StoredDescriptor> stored = read_stored_descriptor(table);
  if (!stored.ok()) return stored.status();
  return std::move(stored->descriptor);
}

Result<StoredDescriptor> TableDirectories::read_stored_descriptor(const TableName& table) const {
  Result<StoredDescriptor> found = read_latest_descriptor(table);
  // A version is removed only when a newer one is there.
  for (int look = 1; look < kDescriptorLooks; ++look) {
    if (found.ok() || found.status().code() != StatusCode::kUnavailable) break;
    found = read_latest_descriptor(table);
  }
  return found;
}

Result<StoredDescriptor> TableDirectories::read_latest_descriptor(const TableName& table) const {
  const Result<std::vector<std::uint64_t>> versions = descriptor_versions(table);
  if (!versions.ok()) return versions.status();
  if (versions->empty())
    return Status(StatusCode::kNotFound, "table " + to_string(table) + " has no descriptor");
  for (const std::uint64_t version : *versions) {
    const Result<std::string> bytes = files_.read(layout_.descriptor(table, version));
    if (bytes.status().code() == StatusCode::kNotFound)
      return Status(StatusCode::kUnavailable, "the descriptor of table " + to_string(table) +
                                                  " was replaced while it was read");
    // What cannot be read now may be the one that counts: an older one says what is not so any
    // more.
    if (!bytes.ok()) return bytes.status().with_context("the descriptor of " + to_string(table));
    if (std::optional<StoredDescriptor> stored = decode_descriptor(*bytes, version))
      return *std::move(stored);
  }
  return Status(StatusCode::kCorruption,
                "no descriptor of table " + to_string(table) + " can be read");
}

Status TableDirectories::archive_table(const TableName& table) const {
  const Result<std::vector<std::string>> ids = region_ids(table);
  if (!ids.ok()) return ids.status();
  if (Status bad = archive_regions(table, *ids); !bad.ok()) return bad;
  return files_.remove_tree(layout_.table(table));
}

}  // namespace pv2::cluster
