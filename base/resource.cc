// SPDX-License-Identifier: Apache-2.0
//
// LockSet: builds the sorted set and adds what the hierarchy asks for. Cannot fail.

#include "pv2/base/resource.h"

#include <algorithm>
#include <utility>

namespace pv2 {

std::string to_string(ResourceClass cls) {
  switch (cls) {
    case ResourceClass::kGlobal:
      return "global";
    case ResourceClass::kMeta:
      return "meta";
    case ResourceClass::kNamespace:
      return "namespace";
    case ResourceClass::kTable:
      return "table";
    case ResourceClass::kRegion:
      return "region";
    case ResourceClass::kServer:
      return "server";
    case ResourceClass::kPeer:
      return "peer";
    case ResourceClass::kType:
      return "type";
    case ResourceClass::kHostFirst:
      break;
  }
  return "class" + std::to_string(static_cast<unsigned>(cls));
}

std::string to_string(const ResourceKey& key) {
  return key.name.empty() ? to_string(key.cls) : to_string(key.cls) + " " + key.name;
}

std::string_view to_string(LockMode mode) noexcept {
  return mode == LockMode::kShared ? "shared" : "exclusive";
}

std::string table_key_name(std::string_view name_space, std::string_view table) {
  std::string name(name_space);
  name += ':';
  name += table;
  return name;
}

LockSet& LockSet::global(std::string_view name, LockMode mode) {
  return key({ResourceClass::kGlobal, std::string(name)}, mode);
}

LockSet& LockSet::meta(LockMode mode) { return key({ResourceClass::kMeta, {}}, mode); }

LockSet& LockSet::name_space(std::string_view name, LockMode mode) {
  return key({ResourceClass::kNamespace, std::string(name)}, mode);
}

LockSet& LockSet::table(std::string_view name_space, std::string_view table, LockMode mode) {
  const bool first = requests_.empty();
  if (first) requests_.reserve(2);
  add({ResourceClass::kNamespace, std::string(name_space)}, LockMode::kShared);
  const std::uint32_t at = add({ResourceClass::kTable, table_key_name(name_space, table)}, mode);
  if (first) primary_ = at;
  return *this;
}

LockSet& LockSet::region(std::string_view name_space, std::string_view table,
                         std::string_view region, LockMode mode) {
  this->table(name_space, table, LockMode::kShared);
  std::string name = table_key_name(name_space, table);
  name += ',';
  name += region;
  add({ResourceClass::kRegion, std::move(name)}, mode);
  return *this;
}

LockSet& LockSet::server(std::string_view name, LockMode mode) {
  return key({ResourceClass::kServer, std::string(name)}, mode);
}

LockSet& LockSet::peer(std::string_view name, LockMode mode) {
  return key({ResourceClass::kPeer, std::string(name)}, mode);
}

LockSet& LockSet::key(ResourceKey key, LockMode mode) {
  const bool first = requests_.empty();
  const std::uint32_t at = add(std::move(key), mode);
  if (first) primary_ = at;
  return *this;
}

LockSet& LockSet::scope(LockScope scope) {
  scope_ = scope;
  return *this;
}

const ResourceKey& LockSet::primary() const& noexcept {
  static const ResourceKey nothing;
  return requests_.empty() ? nothing : requests_[primary_].key;
}

std::uint32_t LockSet::add(ResourceKey key, LockMode mode) {
  const auto at = std::lower_bound(
      requests_.begin(), requests_.end(), key,
      [](const LockRequest& request, const ResourceKey& wanted) { return request.key < wanted; });
  const auto index = static_cast<std::uint32_t>(at - requests_.begin());
  if (at != requests_.end() && at->key == key) {
    at->mode = std::max(at->mode, mode);
    return index;
  }
  const bool is_first = requests_.empty();
  requests_.insert(at, {std::move(key), mode});  // may throw; then nothing has changed
  if (!is_first && index <= primary_) ++primary_;
  return index;
}

}  // namespace pv2
