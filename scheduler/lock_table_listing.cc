// SPDX-License-Identifier: Apache-2.0
//
// LockTable, the listing: one pass over the keys under the mutex, everything else after it.

#include <algorithm>
#include <utility>
#include <vector>

#include "lock_table.h"

namespace pv2 {

void LockTable::copy_to(LockListing& listing) const {
  for (const LockNode* node : nodes_) {
    const std::uint32_t holders = node->exclusive + node->shared;
    if (holders + node->waiter_count == 0 && !node->limited()) continue;
    listing.names += node->key.name;
    listing.keys.push_back(
        {node->key.cls, listing.names.size(), node->limit, holders, node->waiter_count});
    const auto add = [&](const LockRecordList& list, LockMode mode) {
      for (const LockRecord& record : list) {
        listing.parties.push_back({record.entry->id, record.entry->since_, record.ticket, mode});
      }
    };
    for (const LockMode mode : {LockMode::kShared, LockMode::kExclusive}) {
      add(node->holding[mode == LockMode::kExclusive], mode);
    }
    for (const LockMode mode : {LockMode::kShared, LockMode::kExclusive}) {
      for (const auto& lists : node->waiting) add(lists[mode == LockMode::kExclusive], mode);
    }
  }
}

std::vector<LockInfo> LockListing::assemble() && {
  std::vector<LockInfo> infos;
  infos.reserve(keys.size());
  auto party = parties.begin();
  const auto next = [&party](std::uint32_t count, auto before) {
    const auto end = party + count;
    std::sort(party, end, before);
    std::vector<LockInfo::Party> list;
    list.reserve(count);
    for (; party != end; ++party) list.push_back({party->id, party->mode, party->since, {}});
    return list;
  };
  std::size_t name_begin = 0;
  for (const Key& key : keys) {
    LockInfo& info = infos.emplace_back();
    info.key = {key.cls, names.substr(name_begin, key.name_end - name_begin)};
    name_begin = key.name_end;
    if (key.limit != LockNode::kNoLimit) info.limit = key.limit;
    info.holders = next(key.holders, [](const Party& a, const Party& b) { return a.id < b.id; });
    info.waiters =
        next(key.waiters, [](const Party& a, const Party& b) { return a.ticket < b.ticket; });
  }
  std::sort(infos.begin(), infos.end(),
            [](const LockInfo& a, const LockInfo& b) { return a.key < b.key; });
  return infos;
}

}  // namespace pv2
