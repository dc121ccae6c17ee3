// SPDX-License-Identifier: Apache-2.0
//
// The checks of ClusterWatch. Whoever works on a region or table has locked it, so the locks say
// who is responsible.

#include "cluster_watch.h"

#include <pv2/base/resource.h>
#include <pv2/engine/procedure_executor.h>

#include <algorithm>
#include <utility>

namespace pv2::testing {
namespace {

/// What is locked, or waited for.
class Locks {
 public:
  explicit Locks(ProcedureExecutor& executor) {
    for (const LockInfo& lock : executor.inspect().locks()) {
      if (!lock.holders.empty() || !lock.waiters.empty()) keys_.insert(lock.key);
    }
  }
  /// Whether somebody has, or waits for, the strongest lock of the set.
  [[nodiscard]] bool has(const LockSet& wanted) const {
    return std::ranges::any_of(wanted.requests(), [&](const LockRequest& request) {
      return request.mode == LockMode::kExclusive && keys_.contains(request.key);
    });
  }

 private:
  std::set<ResourceKey> keys_;
};

bool is_between(RegionState state) {
  return state == RegionState::kOpening || state == RegionState::kClosing ||
         state == RegionState::kAbnormallyClosed;
}

}  // namespace

void ClusterWatch::look(const ClusterSnapshot& snapshot, ProcedureExecutor& executor,
                        const std::set<ServerName>& unrecovered, Findings& findings) {
  check_holders(snapshot, findings);
  check_sequences(snapshot, findings);
  check_responsibility(snapshot, executor, unrecovered, findings);
}

void ClusterWatch::check_holders(const ClusterSnapshot& snapshot, Findings& findings) {
  std::map<std::string, ServerName> holders;
  for (const auto& [server, open] : snapshot.open) {
    for (const auto& [region, sequence] : open) {
      const auto [other, is_first] = holders.emplace(region, server);
      if (is_first) continue;
      findings.add("region " + region + " is open on " + to_string(other->second) + " and on " +
                   to_string(server));
    }
  }
}

void ClusterWatch::check_sequences(const ClusterSnapshot& snapshot, Findings& findings) {
  for (const RegionRow& row : snapshot.regions) {
    std::uint64_t& highest = sequences_[row.region.id];
    if (row.open_sequence < highest) {
      findings.add("the sequence of region " + row.region.id + " went back to " +
                   std::to_string(row.open_sequence));
    }
    highest = row.open_sequence;
  }
}

void ClusterWatch::check_responsibility(const ClusterSnapshot& snapshot,
                                        ProcedureExecutor& executor,
                                        const std::set<ServerName>& unrecovered,
                                        Findings& findings) {
  const Locks locks(executor);
  for (const RegionRow& row : snapshot.regions) {
    const bool lives = snapshot.open.contains(row.server);
    if (!is_between(row.state) && !(row.state == RegionState::kOpen && !lives)) continue;
    const TableName& table = row.region.table;
    const LockSet region =
        LockSet().region(table.name_space, table.table, row.region.id, LockMode::kExclusive);
    if (locks.has(region) || unrecovered.contains(row.server)) continue;
    findings.add("nobody is responsible for region " + row.region.id + ", which is " +
                 std::string(to_string(row.state)) + " on " + to_string(row.server));
  }
  for (const TableRow& row : snapshot.tables) {
    if (row.state == TableState::kEnabled || row.state == TableState::kDisabled) continue;
    const TableName& table = row.descriptor.name;
    if (locks.has(LockSet().table(table.name_space, table.table, LockMode::kExclusive))) continue;
    findings.add("nobody is responsible for table " + to_string(table) + ", which is " +
                 std::string(to_string(row.state)));
  }
}

}  // namespace pv2::testing
