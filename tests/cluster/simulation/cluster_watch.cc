// SPDX-License-Identifier: Apache-2.0
//
// Each look compares what there is with what there was before. Nothing is asked through the
// network.

#include "cluster/simulation/cluster_watch.h"

#include <pv2/engine/inspection.h>

#include <algorithm>
#include <vector>

namespace pv2::testing::cluster_simulation {

using namespace pv2::cluster;  // NOLINT: of the simulation

void ClusterWatch::wrong(const std::string& invariant, const std::string& what) {
  if (disorder_.empty()) disorder_ = invariant + ": " + what;
}

void ClusterWatch::look() {
  ++looks_;
  look_at_servers();
  look_at_catalogue();
}

// A server that is fenced acknowledges nothing and answers no read, whatever it believes.
void ClusterWatch::look_at_servers() {
  std::map<std::string, ServerName> serving;
  for (const ServerName& name : world_.servers()) {
    if (!world_.files.exists(world_.layout.wals(name))) continue;
    std::set<std::string> open;
    for (const RegionStatus& region : world_.server(name).status().regions) {
      open.insert(region.region.id);
      if (!region.serves) continue;
      const auto [other, is_first] = serving.emplace(region.region.id, name);
      if (!is_first) {
        wrong("a region accepts writes on one unfenced server at most",
              region.region.id + " is served by " + to_string(name) + " and by " +
                  to_string(other->second));
      }
      serves_now(name, region);
    }
    // What it has closed is in files, and its logs are not needed for it.
    for (auto& [id, seen] : served_) {
      if (seen.server == name && !open.contains(id)) seen.server = {};
    }
  }
}

void ClusterWatch::serves_now(const ServerName& server, const RegionStatus& region) {
  Seen& seen = served_[region.region.id];
  if (seen.server == server && seen.sequence == region.sequence) return;
  if (region.sequence < seen.sequence) {
    wrong("the open sequence of a region never decreases",
          region.region.id + " is open on " + to_string(server) + " with " +
              std::to_string(region.sequence) + ", and was open on " + to_string(seen.server) +
              " with " + std::to_string(seen.sequence));
  }
  if (!seen.server.empty() && seen.server != server) {
    ++moves_;
    // Its last host is alive and has closed it; or it is dead, and its logs were split.
    if (world_.has_master() && world_.master().is_online()) {
      const ServerRow host = world_.master().rows().server(seen.server);
      const bool is_split =
          is_meta(region.region.table) ? host.meta_recovered : is_recovered(host.state);
      if (is_dead(host.state) && !is_split) {
        wrong("a region opens only when the logs of its last host are split",
              region.region.id + " is open on " + to_string(server) + ", and " +
                  to_string(seen.server) + " is " + std::string(to_string(host.state)));
      }
    }
  }
  seen = {server, region.sequence};
}

void ClusterWatch::look_at_catalogue() {
  if (!world_.has_master() || !world_.master().is_online()) return;
  for (const auto& [id, kept] : world_.master().rows().regions()) {
    if (kept.row.state == RegionState::kClosed) served_[id].server = {};
    std::uint64_t& sequence = sequences_[id];
    if (kept.row.open_sequence < sequence) {
      wrong("the open sequence of a region never decreases",
            "the row of " + id + " has " + std::to_string(kept.row.open_sequence) + " after " +
                std::to_string(sequence));
    }
    sequence = kept.row.open_sequence;
  }
}

void ClusterWatch::look_at_procedures() {
  if (!world_.has_master() || !world_.master().is_online()) return;
  const std::vector<ProcedureInfo> all = world_.master().executor().inspect().list();
  // Holders that exclude each other are of one tree: a child has what its parent holds.
  std::map<ResourceKey, std::pair<ProcedureId, bool>> held;  // root, whether exclusively
  std::set<std::string> regions;
  std::set<std::string> dead;
  for (const ProcedureInfo& one : all) {
    for (const LockRequest& request : one.locks.requests()) {
      if (request.key.cls == ResourceClass::kRegion) regions.insert(request.key.name);
      if (request.key.cls == ResourceClass::kServer) dead.insert(request.key.name);
      if (!one.holds_locks) continue;
      const bool is_exclusive = request.mode == LockMode::kExclusive;
      const auto [other, is_first] = held.emplace(request.key, std::pair(one.root, is_exclusive));
      if (!is_first && other->second.first != one.root && (is_exclusive || other->second.second)) {
        wrong("conflicting holders of a lock never overlap",
              to_string(request.key) + " is held by trees " + std::to_string(one.root.value) +
                  " and " + std::to_string(other->second.first.value));
      }
    }
  }
  for (const auto& [id, kept] : world_.master().rows().regions()) {
    const RegionRow& row = kept.row;
    const bool is_between = row.state == RegionState::kOpening ||
                            row.state == RegionState::kClosing ||
                            row.state == RegionState::kAbnormallyClosed;
    const bool has_one = std::ranges::any_of(regions, [&id = id](const std::string& name) {
      return name.find(id) != std::string::npos;
    });
    if (!is_between || has_one || dead.contains(to_string(row.server))) continue;
    if (is_dead(world_.master().rows().server(row.server).state)) continue;
    wrong("every region on its way has a procedure that is responsible for it",
          id + " is " + std::string(to_string(row.state)) + ", and nobody moves it");
  }
}

void ClusterWatch::remember_locks() {
  locks_.clear();
  if (!world_.has_master()) return;
  for (const ProcedureInfo& one : world_.master().executor().inspect().list()) {
    if (!one.holds_locks || one.locks.scope() != LockScope::kOperation) continue;
    // Without a step that is recorded, the grant may have been in memory only.
    if (one.history.empty()) continue;
    for (const LockRequest& request : one.locks.requests()) {
      locks_.emplace(to_string(request.key), one.id.value);
    }
  }
}

void ClusterWatch::compare_locks() {
  if (!world_.has_master()) return;
  std::set<std::pair<std::string, std::uint64_t>> now;
  for (const ProcedureInfo& one : world_.master().executor().inspect().list()) {
    if (!one.holds_locks || one.locks.scope() != LockScope::kOperation) continue;
    for (const LockRequest& request : one.locks.requests()) {
      now.emplace(to_string(request.key), one.id.value);
    }
  }
  for (const auto& lock : locks_) {
    if (now.contains(lock)) continue;
    const auto live = world_.master().executor().inspect().describe(ProcedureId{lock.second});
    // It may have ended in the last record, whose answer the dead master has not heard.
    if (!live.ok() || live->state == ProcedureState::kSuccess) continue;
    wrong("locks after a load equal those before the crash",
          lock.first + " is not held by procedure " + std::to_string(lock.second) + " any more (" +
              live->type + " in " + live->step_name + ")");
  }
  locks_.clear();
}

}  // namespace pv2::testing::cluster_simulation
