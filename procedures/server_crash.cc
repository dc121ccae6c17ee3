// SPDX-License-Identifier: Apache-2.0
//
// The steps of ServerCrash. CHECK does not trust what the earlier steps did: it looks at the
// catalogue, and as long as a region is recorded on the dead server, the round begins again.

#include "pv2/procedures/server_crash.h"

#include <cstdint>
#include <utility>

#include "pv2/procedures/assign_region.h"
#include "stable_hash.h"

namespace pv2 {
namespace {

CatalogueWrite server_write(std::string effect_key, const ServerName& server, ServerState state) {
  return {std::move(effect_key), {}, {}, {{server, state}}};
}

}  // namespace

LockSet ServerCrash::locks() const {
  return LockSet().server(to_string(server_), LockMode::kExclusive);
}

ServerCrash::Flow ServerCrash::execute_from_state(ServerCrashStep step, StepContext& ctx) {
  switch (step) {
    case ServerCrashStep::kStart:
      return start(ctx);
    case ServerCrashStep::kGetRegions:
      return get_regions(ctx);
    case ServerCrashStep::kAssign:
      return assign(ctx);
    case ServerCrashStep::kCheck:
      return check(ctx);
    case ServerCrashStep::kFinish:
      return finish(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.ServerCrash has no such step"});
}

ServerCrash::Flow ServerCrash::start(StepContext& ctx) {
  // First the server stops serving, then the catalogue says so: a reader of "crashed" may give the
  // server's regions to others.
  const auto* fenced =
      ctx.await<Status>([&](auto done) { ports_->servers.fence(server_, std::move(done)); });
  if (fenced == nullptr) return wait();
  if (!fenced->ok()) return retry(*fenced);
  const auto* crashed = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write(
        server_write(ctx.effect_key() + "/crashed", server_, ServerState::kCrashed),
        std::move(done));
  });
  if (crashed == nullptr) return wait();
  // Retired already: an earlier ServerCrash has moved everything.
  if (crashed->status().code() == StatusCode::kFailedPrecondition) return done(to_string(server_));
  if (!crashed->ok()) return retry(crashed->status());
  return next(ServerCrashStep::kGetRegions);
}

ServerCrash::Flow ServerCrash::get_regions(StepContext& ctx) {
  const auto* rows = ctx.await<Result<std::vector<RegionRow>>>(
      [&](auto done) { ports_->catalogue.regions_on(server_, std::move(done)); });
  if (rows == nullptr) return wait();
  if (!rows->ok()) return retry(rows->status());
  regions_.clear();
  for (const RegionRow& row : rows->value()) regions_.push_back(row.region);
  return next(ServerCrashStep::kAssign);
}

ServerCrash::Flow ServerCrash::assign(StepContext& ctx) {
  std::vector<const Result<Applied>*> marks;
  bool all_here = true;
  for (const RegionInfo& region : regions_) {
    marks.push_back(ctx.await<Result<Applied>>([&](auto done) {
      ports_->catalogue.write({.effect_key = ctx.effect_key() + "/closed/" + region.id,
                               .tables = {},
                               .regions = {{region, RegionState::kAbnormallyClosed, server_, 0}},
                               .servers = {}},
                              std::move(done));
    }));
    all_here = all_here && marks.back() != nullptr;
  }
  if (!all_here) return wait();
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    // The row no longer names the dead server: the procedure that was opening the region has chosen
    // another server.
    if (marks[i]->status().code() == StatusCode::kFailedPrecondition) continue;
    if (!marks[i]->ok()) return retry(marks[i]->status());
    ctx.spawn(AssignRegion(*ports_, regions_[i], static_cast<std::uint32_t>(i), server_));
  }
  return next(ServerCrashStep::kCheck);
}

ServerCrash::Flow ServerCrash::check(StepContext& ctx) {
  const auto* rows = ctx.await<Result<std::vector<RegionRow>>>(
      [&](auto done) { ports_->catalogue.regions_on(server_, std::move(done)); });
  if (rows == nullptr) return wait();
  if (!rows->ok()) return retry(rows->status());
  return next(rows->value().empty() ? ServerCrashStep::kFinish : ServerCrashStep::kGetRegions);
}

ServerCrash::Flow ServerCrash::finish(StepContext& ctx) {
  const auto* retired = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write(
        server_write(ctx.effect_key() + "/retired", server_, ServerState::kRetired),
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
