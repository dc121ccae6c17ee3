// SPDX-License-Identifier: Apache-2.0
//
// LockSet: builds the sorted set and adds what the hierarchy asks for. Fails only without memory.

#include "pv2/base/resource.h"

#include <algorithm>
#include <utility>

#include "pv2/base/assert.h"
#include "pv2/base/mutex.h"

namespace pv2 {
namespace {

bool is_before(const LockRequest& request, const ResourceKey& key) { return request.key < key; }

// One for all sets: few have a tail, and nearly always the thread that built one reads it first.
Mutex tail_mutex;

}  // namespace

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

LockSet& LockSet::operator=(LockSet other) noexcept {
  requests_.swap(other.requests_);
  primary_ = other.primary_;
  tail_.store(other.take_tail(), std::memory_order_relaxed);
  scope_ = other.scope_;
  return *this;
}

const ResourceKey& LockSet::primary() const& noexcept {
  static const ResourceKey nothing;
  const LockRequests& sorted = requests();
  return sorted.empty() ? nothing : sorted[primary_].key;
}

std::uint32_t LockSet::add(ResourceKey key, LockMode mode) {
  const std::uint16_t tail = tail_.load(std::memory_order_relaxed);
  const auto sorted_end = requests_.end() - tail;
  const auto at = std::lower_bound(requests_.begin(), sorted_end, key, is_before);
  const auto index = static_cast<std::uint32_t>(at - requests_.begin());
  if (at != sorted_end && at->key == key) {
    at->mode = std::max(at->mode, mode);
    return index;
  }
  if (tail != 0 || sorted_end - at > kMovesMax) {
    requests_.push_back({std::move(key), mode});  // may throw; then nothing has changed
    const auto longer = static_cast<std::uint16_t>(tail + 1);
    tail_.store(longer, std::memory_order_relaxed);
    if (longer == kTailMax || 2 * std::size_t{longer} >= requests_.size()) sort_tail();
    return 0;
  }
  const bool is_first = requests_.empty();
  requests_.insert(at, {std::move(key), mode});  // may throw; then nothing has changed
  if (!is_first && index <= primary_) ++primary_;
  return index;
}

// What was asked for first is not in the tail, and no key of the tail is in the rest.
void LockSet::sort_tail() const noexcept {
  MutexLock lock(tail_mutex);
  const std::uint16_t count = tail_.load(std::memory_order_relaxed);
  if (count == 0) return;  // another thread has sorted it in meanwhile
  const auto tail = requests_.end() - count;
  PV2_ASSERT(requests_.begin() + primary_ < tail, "what was asked for first is not in the tail");
  // Of those with one key the strongest comes first, and stays.
  std::sort(tail, requests_.end(), [](const LockRequest& one, const LockRequest& other) {
    const auto order = one.key <=> other.key;
    return order != 0 ? order < 0 : one.mode > other.mode;
  });
  const auto repeats = std::unique(
      tail, requests_.end(),
      [](const LockRequest& one, const LockRequest& other) { return one.key == other.key; });
  requests_.erase(repeats, requests_.end());
  const auto first = requests_.begin() + primary_;
  const auto before = std::lower_bound(tail, requests_.end(), first->key, is_before) - tail;
  primary_ += static_cast<std::uint32_t>(before);
  std::inplace_merge(
      requests_.begin(), tail, requests_.end(),
      [](const LockRequest& one, const LockRequest& other) { return one.key < other.key; });
  tail_.store(0, std::memory_order_release);
}

}  // namespace pv2
