// SPDX-License-Identifier: Apache-2.0
//
// The steps of AssignRegion. One step decides on a server and the next one uses it, so after a
// restart the same server is asked under the same effect key. The one hard question is when a
// server may be left for another: see open().

#include "pv2/procedures/assign_region.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace pv2 {
namespace {

// The pause between two rounds over all servers, when each of them has refused the region. One
// second: a refusal reflects the state of a server (starting, overloaded), which changes no faster.
constexpr Duration kRoundPause = std::chrono::seconds(1);

}  // namespace

AssignRegion::AssignRegion(ClusterPorts& ports, RegionInfo region, std::uint32_t spread,
                           ServerName from)
    : ports_(&ports), region_(std::move(region)), spread_(spread), from_(std::move(from)) {}

LockSet AssignRegion::locks() const {
  return LockSet().region(region_.table.name_space, region_.table.table, region_.id,
                          LockMode::kExclusive);
}

AssignRegion::Flow AssignRegion::execute_from_state(AssignRegionStep step, StepContext& ctx) {
  switch (step) {
    case AssignRegionStep::kChooseServer:
      return choose_server(ctx);
    case AssignRegionStep::kOpen:
      return open(ctx);
    case AssignRegionStep::kConfirmOpen:
      return confirm_open(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.AssignRegion has no such step"});
}

AssignRegion::Flow AssignRegion::choose_server(StepContext& ctx) {
  const auto* read = ctx.await<Result<std::optional<RegionRow>>>(
      [&](auto done) { ports_->catalogue.read_region(region_.id, std::move(done)); });
  const auto* live = ctx.await<Result<std::vector<ServerName>>>(
      [&](auto done) { ports_->servers.live_servers(std::move(done)); });
  if (read == nullptr || live == nullptr) return wait();
  if (!read->ok()) return retry(read->status());
  if (!live->ok()) return retry(live->status());

  const std::optional<RegionRow>& row = read->value();
  if (!row) {
    return fail({StatusCode::kNotFound, "region " + region_.id + " of " + to_string(region_.table) +
                                            " is not in the catalogue, so it cannot be assigned"});
  }
  if (target_.empty()) {
    // Not begun yet: another procedure may have brought the region online while this one waited for
    // the region's lock.
    const bool moved = !from_.empty() && row->server != from_;
    const bool online = from_.empty() && row->state == RegionState::kOpen;
    if (moved || online) return done(to_string(row->server));
  }

  std::vector<ServerName> candidates;
  for (const ServerName& server : live->value()) {
    if (server != from_ && std::ranges::find(avoided_, server) == avoided_.end()) {
      candidates.push_back(server);
    }
  }
  if (!candidates.empty()) {
    target_ = candidates[spread_ % candidates.size()];
    last_sequence_ = row->open_sequence;
    return next(AssignRegionStep::kOpen);
  }
  if (avoided_.empty()) {
    return retry({StatusCode::kUnavailable,
                  "no live region server for region " + region_.id + "; start one"});
  }
  if (!ctx.timed_out()) return wait_for(kRoundPause);
  avoided_.clear();
  return next(AssignRegionStep::kChooseServer);
}

AssignRegion::Flow AssignRegion::open(StepContext& ctx) {
  const std::string key = ctx.effect_key();
  const auto* opening = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write({.effect_key = key + "/opening",
                             .tables = {},
                             .regions = {{region_, RegionState::kOpening, target_, last_sequence_}},
                             .servers = {}},
                            std::move(done));
  });
  if (opening == nullptr) return wait();
  if (opening->status().code() == StatusCode::kFenced) return choose_another();
  if (!opening->ok()) return retry(opening->status());

  const auto* call = ctx.await<CallOutcome>([&](auto done) {
    ports_->servers.open_region({target_, region_, last_sequence_, key + "/open"}, std::move(done));
  });
  if (call == nullptr) return wait();
  switch (call->kind) {
    case CallOutcome::Kind::kDone:
      open_sequence_ = call->open_sequence;
      return next(AssignRegionStep::kConfirmOpen);
    case CallOutcome::Kind::kRefused:
      return choose_another();
    case CallOutcome::Kind::kNotSent:
      // This run of the step has written the catalogue, and a call always follows that write, so
      // this was the first call.
      if (opening->value() == Applied::kNow) return choose_another();
      return leave_if_crashed(ctx, call->reason);
    case CallOutcome::Kind::kUnknown:
      return leave_if_crashed(ctx, call->reason);
  }
  return retry({StatusCode::kInternal, "a call ended in a way that is not known here"});
}

AssignRegion::Flow AssignRegion::leave_if_crashed(StepContext& ctx, const std::string& reason) {
  // The server may have opened the region. Another server may get the region only when this one is
  // known to serve nothing any more, which is what "crashed" in the catalogue means. Until then
  // this one is asked again.
  const auto* state = ctx.await<Result<ServerState>>(
      [&](auto done) { ports_->catalogue.read_server(target_, std::move(done)); });
  if (state == nullptr) return wait();
  if (!state->ok()) return retry(state->status());
  if (state->value() != ServerState::kOnline) return choose_another();
  return retry({StatusCode::kUnknownOutcome,
                "region " + region_.id + " may or may not be open on " + to_string(target_) + " (" +
                    reason + "); asking again until it answers or is dead"});
}

AssignRegion::Flow AssignRegion::confirm_open(StepContext& ctx) {
  const auto* open = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write({.effect_key = ctx.effect_key() + "/open",
                             .tables = {},
                             .regions = {{region_, RegionState::kOpen, target_, open_sequence_}},
                             .servers = {}},
                            std::move(done));
  });
  if (open == nullptr) return wait();
  if (open->status().code() == StatusCode::kFenced) return choose_another();
  if (!open->ok()) return retry(open->status());
  return done(to_string(target_));
}

AssignRegion::Flow AssignRegion::choose_another() {
  avoided_.push_back(target_);
  return next(AssignRegionStep::kChooseServer);
}

}  // namespace pv2
