// SPDX-License-Identifier: Apache-2.0
//
// Version cells as values of stored cells: a list, in order of the senders.

#include "storage/version_cell.h"

#include <pv2/base/fields.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace pv2::cluster {
namespace {

struct VersionValue {
  struct Item {
    std::string sender;
    EditVersion version;

    void fields(auto& f) {
      f(1, "sender", sender);
      f(2, "version", version);
    }
  };
  std::vector<Item> items;

  void fields(auto& f) { f(1, "items", items); }
};

}  // namespace

bool VersionCell::advance(const std::string& sender, const EditVersion& version) {
  const auto [known, is_new] = last.emplace(sender, version);
  if (is_new) return true;
  if (version <= known->second) return false;
  known->second = version;
  return true;
}

std::string encode_versions(VersionCell versions) {
  VersionValue value;
  for (const auto& [sender, version] : versions.last) value.items.push_back({sender, version});
  std::string bytes;
  encode_fields(value, FieldSelection::kAll, bytes);
  return bytes;
}

std::optional<VersionCell> decode_versions(std::string_view value) {
  VersionValue decoded;
  if (!decode_fields(decoded, FieldSelection::kAll, value).ok()) return std::nullopt;
  VersionCell versions;
  for (auto& [sender, version] : decoded.items) versions.last[std::move(sender)] = version;
  return versions;
}

}  // namespace pv2::cluster
