// SPDX-License-Identifier: Apache-2.0
//
// The steps of ServerCrash. The three loops do not trust what their children did: they look at the
// logs, or at the catalogue, and as long as something is left the round begins again.

#include "pv2/procedures/server_crash.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "pv2/procedures/assign_server_regions.h"
#include "pv2/procedures/claim_queues.h"
#include "pv2/procedures/split_log.h"
#include "pv2/procedures/transit_region_state.h"
#include "stable_hash.h"
#include "table_steps.h"

namespace pv2 {
namespace {

CatalogueWrite server_write(std::string effect_key, ServerRow row) {
  return {.effect_key = std::move(effect_key), .servers = {std::move(row)}};
}

}  // namespace

LockSet ServerCrash::locks() const {
  return LockSet().server(to_string(server_), LockMode::kExclusive);
}

ServerCrash::Flow ServerCrash::execute_from_state(Step step, StepContext& ctx) {
  switch (step) {
    case Step::kStart:
      return start(ctx);
    case Step::kSplitMetaLogs:
      return split_meta_logs(ctx);
    case Step::kDeleteSplitMetaWalsDir:
      return delete_split_meta_wals_dir(ctx);
    case Step::kAssignMeta:
      return assign_meta(ctx);
    case Step::kGetRegions:
      return get_regions(ctx);
    case Step::kSplitLogs:
      return split_logs(ctx);
    case Step::kDeleteSplitWalsDir:
      return delete_split_wals_dir(ctx);
    case Step::kAssign:
      return assign(ctx);
    case Step::kCheck:
      return check(ctx);
    case Step::kClaimReplicationQueues:
      return claim_replication_queues(ctx);
    case Step::kFinish:
      return finish(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.ServerCrash has no such step"});
}

ServerCrash::Flow ServerCrash::start(StepContext& ctx) {
  if (Status bad = check_server_name(server_); !bad.ok()) return fail(std::move(bad));
  const auto* row = ctx.await<Result<ServerRow>>(
      [&](auto done) { ports_->catalogue.read_server(server_, std::move(done)); });
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  // An earlier ServerCrash has moved everything. A fence would make a directory that nobody
  // removes.
  if (row->value().state == ServerState::kRetired) return done(to_string(server_));
  // An operator has ended the earlier ServerCrash, and this one does what is left. The directory
  // may be gone. A fence would first make it again under the server's own name, and a server that
  // still runs would look there and take itself for one that is not fenced.
  if (row->value().state == ServerState::kRecovered) return find_meta(ctx);

  // First nothing is acknowledged any more that the server writes, then the catalogue says so: a
  // reader of "crashed" may have its logs read to their ends.
  const auto* fenced =
      ctx.await<Status>([&](auto done) { ports_->logs.fence(server_, std::move(done)); });
  if (fenced == nullptr) return wait();
  if (!fenced->ok()) return retry(*fenced);
  const auto* crashed = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write(
        server_write(ctx.effect_key() + "/crashed", {server_, ServerState::kCrashed, false}),
        std::move(done));
  });
  if (crashed == nullptr) return wait();
  // Refused: a late write of an earlier ServerCrash has recorded more. The row is read again.
  if (!crashed->ok()) return retry(crashed->status());
  return find_meta(ctx);
}

ServerCrash::Flow ServerCrash::find_meta(StepContext& ctx) {
  // Asked after "crashed" is written: from then on no row begins to name the server.
  const auto* row = ctx.await<Result<std::optional<RegionRow>>>(
      [&](auto done) { ports_->catalogue.read_region(meta_region().id, std::move(done)); });
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  const std::optional<RegionRow>& meta = row->value();
  // A row that is CLOSED or FAILED_OPEN names the last server; nothing of the region is left there.
  carries_meta_ = meta && meta->server == server_ && is_placed(meta->state);
  return next(carries_meta_ ? Step::kSplitMetaLogs : Step::kGetRegions);
}

ServerCrash::Flow ServerCrash::split_meta_logs(StepContext& ctx) {
  const auto* logs = ctx.await<Result<std::vector<std::string>>>(
      [&](auto done) { ports_->logs.logs_of(server_, LogKind::kMeta, std::move(done)); });
  if (logs == nullptr) return wait();
  if (!logs->ok()) return retry(logs->status());
  for (const std::string& log : logs->value()) {
    ctx.spawn(SplitLog(*ports_, server_, LogKind::kMeta, log));
  }
  return next(Step::kDeleteSplitMetaWalsDir);
}

ServerCrash::Flow ServerCrash::delete_split_meta_wals_dir(StepContext& ctx) {
  const auto* logs = ctx.await<Result<std::vector<std::string>>>(
      [&](auto done) { ports_->logs.logs_of(server_, LogKind::kMeta, std::move(done)); });
  if (logs == nullptr) return wait();
  if (!logs->ok()) return retry(logs->status());
  if (!logs->value().empty()) return next(Step::kSplitMetaLogs);
  const auto* recovered = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write(
        server_write(ctx.effect_key() + "/meta_recovered", {server_, ServerState::kCrashed, true}),
        std::move(done));
  });
  if (recovered == nullptr) return wait();
  // Refused: an earlier ServerCrash has come further, and has recorded more.
  if (!recovered->ok() && recovered->status().code() != StatusCode::kFailedPrecondition) {
    return retry(recovered->status());
  }
  return next(Step::kAssignMeta);
}

ServerCrash::Flow ServerCrash::assign_meta(StepContext& ctx) {
  const auto* marked = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write({.effect_key = ctx.effect_key() + "/closed",
                             .regions = {{meta_region(), RegionState::kAbnormallyClosed, server_}}},
                            std::move(done));
  });
  if (marked == nullptr) return wait();
  // Refused: a move that was under way has taken the region to another server.
  if (!marked->ok() && marked->status().code() != StatusCode::kFailedPrecondition) {
    return retry(marked->status());
  }
  ctx.spawn(TransitRegionState::assign(*ports_, meta_region(), {.from = server_}));
  return next(Step::kGetRegions);
}

ServerCrash::Flow ServerCrash::get_regions(StepContext& ctx) {
  const auto* rows = ctx.await<Result<std::vector<RegionRow>>>(
      [&](auto done) { ports_->catalogue.regions_on(server_, {}, std::move(done)); });
  if (rows == nullptr) return wait();
  if (!rows->ok()) return retry(rows->status());
  cuts_.clear();
  internal::SpawnRound group;
  for (const RegionRow& row : rows->value()) {
    if (group.takes(row.region)) continue;
    cuts_.push_back(row.region.id);
    group = {};
    (void)group.takes(row.region);  // the first one always has room
  }
  return next(recovered_ ? Step::kAssign : Step::kSplitLogs);
}

ServerCrash::Flow ServerCrash::split_logs(StepContext& ctx) {
  const auto* user = ctx.await<Result<std::vector<std::string>>>(
      [&](auto done) { ports_->logs.logs_of(server_, LogKind::kUser, std::move(done)); });
  // The server may have meta logs of an earlier time, when it had the catalogue's region.
  const auto* meta = ctx.await<Result<std::vector<std::string>>>(
      [&](auto done) { ports_->logs.logs_of(server_, LogKind::kMeta, std::move(done)); });
  if (user == nullptr || meta == nullptr) return wait();
  if (!user->ok()) return retry(user->status());
  if (!meta->ok()) return retry(meta->status());
  for (const std::string& log : meta->value()) {
    ctx.spawn(SplitLog(*ports_, server_, LogKind::kMeta, log));
  }
  for (const std::string& log : user->value()) {
    ctx.spawn(SplitLog(*ports_, server_, LogKind::kUser, log));
  }
  return next(Step::kDeleteSplitWalsDir);
}

ServerCrash::Flow ServerCrash::delete_split_wals_dir(StepContext& ctx) {
  for (const LogKind kind : {LogKind::kMeta, LogKind::kUser}) {
    const auto* logs = ctx.await<Result<std::vector<std::string>>>(
        [&](auto done) { ports_->logs.logs_of(server_, kind, std::move(done)); });
    if (logs == nullptr) return wait();
    if (!logs->ok()) return retry(logs->status());
    if (!logs->value().empty()) return next(Step::kSplitLogs);
  }
  const auto* recovered = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write(
        server_write(ctx.effect_key() + "/recovered", {server_, ServerState::kRecovered, true}),
        std::move(done));
  });
  if (recovered == nullptr) return wait();
  if (!recovered->ok()) return retry(recovered->status());
  const auto* removed =
      ctx.await<Status>([&](auto done) { ports_->logs.remove(server_, std::move(done)); });
  if (removed == nullptr) return wait();
  if (!removed->ok()) return retry(*removed);
  recovered_ = true;
  return next(Step::kAssign);
}

ServerCrash::Flow ServerCrash::assign(StepContext& ctx) {
  const auto* peers = ctx.await<Result<std::vector<std::string>>>(
      [&](auto done) { ports_->peers.list_peers(std::move(done)); });
  if (peers == nullptr) return wait();
  RegionIds group;
  for (const std::string& cut : cuts_) {
    group.end = cut;
    ctx.spawn(AssignServerRegions(*ports_, server_, group));
    group = {.first = cut, .end = {}};
  }
  ctx.spawn(AssignServerRegions(*ports_, server_, group));
  // Now and not only after CHECK: a region that cannot be opened, because a file of it is damaged,
  // must not keep the edits of all others from the peers. Nor do peers that cannot be listed keep
  // the regions closed: CLAIM_REPLICATION_QUEUES asks again.
  if (peers->ok()) spawn_claims(ctx, peers->value());
  cuts_.clear();
  return next(Step::kCheck);
}

ServerCrash::Flow ServerCrash::check(StepContext& ctx) {
  const auto* rows = ctx.await<Result<std::vector<RegionRow>>>(
      [&](auto done) { ports_->catalogue.regions_on(server_, {}, std::move(done)); });
  const auto* peers = ctx.await<Result<std::vector<std::string>>>(
      [&](auto done) { ports_->peers.list_peers(std::move(done)); });
  if (rows == nullptr || peers == nullptr) return wait();
  if (!rows->ok()) return retry(rows->status());
  if (!peers->ok()) return retry(peers->status());
  if (!rows->value().empty()) return next(Step::kGetRegions);
  return next(peers->value().empty() ? Step::kFinish : Step::kClaimReplicationQueues);
}

ServerCrash::Flow ServerCrash::claim_replication_queues(StepContext& ctx) {
  const auto* peers = ctx.await<Result<std::vector<std::string>>>(
      [&](auto done) { ports_->peers.list_peers(std::move(done)); });
  if (peers == nullptr) return wait();
  if (!peers->ok()) return retry(peers->status());
  spawn_claims(ctx, peers->value());
  return next(Step::kFinish);
}

void ServerCrash::spawn_claims(StepContext& ctx, const std::vector<std::string>& peers) const {
  for (const std::string& peer : peers) ctx.spawn(ClaimQueues(*ports_, server_, peer));
}

ServerCrash::Flow ServerCrash::finish(StepContext& ctx) {
  const auto* retired = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write(
        server_write(ctx.effect_key() + "/retired", {server_, ServerState::kRetired, true}),
        std::move(done));
  });
  if (retired == nullptr) return wait();
  if (!retired->ok()) return retry(retired->status());
  return done(to_string(server_));
}

Nonce crash_nonce(const ServerName& server) {
  constexpr std::uint64_t kGroup = 0x5365727665724372;  // "ServerCr": no client uses this group
  const std::uint64_t value = internal::stable_hash(to_string(server));
  return {.group = kGroup, .value = value != 0 ? value : 1};
}

}  // namespace pv2
