// SPDX-License-Identifier: Apache-2.0
//
// The steps of TransitRegionState. One step decides on a server and the next one uses it, so after
// a restart the same server is asked. Each CONFIRM step looks at the catalogue, and goes on from
// what it finds there, whatever the child has said.

#include "pv2/procedures/transit_region_state.h"

#include <algorithm>
#include <utility>

#include "failure_pauses.h"
#include "pv2/procedures/close_region.h"
#include "pv2/procedures/open_region.h"
#include "stable_hash.h"

namespace pv2 {
namespace {

// After so many failed openings the region's row says FAILED_OPEN. Ten: three rounds over a small
// cluster. What passes by itself (a server that starts, a full disk that is cleared) has passed
// then, or somebody has to see it.
constexpr std::uint32_t kFailedOpeningsMax = 10;

bool contains(const std::vector<ServerName>& servers, const ServerName& server) {
  return std::ranges::find(servers, server) != servers.end();
}

bool is_disabled(const std::optional<TableRow>& table) {
  return table && (table->state == TableState::kDisabled || table->state == TableState::kDisabling);
}

AssignOptions spread_by_id(const RegionInfo& region) {
  return {.spread = static_cast<std::uint32_t>(internal::stable_hash(region.id))};
}

}  // namespace

TransitRegionState::TransitRegionState(ClusterPorts& ports, TransitKind kind, RegionInfo region,
                                       AssignOptions options)
    : ports_(&ports), kind_(kind), region_(std::move(region)), options_(std::move(options)) {}

TransitRegionState TransitRegionState::assign(ClusterPorts& ports, RegionInfo region,
                                              AssignOptions options) {
  return {ports, TransitKind::kAssign, std::move(region), std::move(options)};
}

TransitRegionState TransitRegionState::unassign(ClusterPorts& ports, RegionInfo region) {
  AssignOptions options = spread_by_id(region);
  return {ports, TransitKind::kUnassign, std::move(region), std::move(options)};
}

TransitRegionState TransitRegionState::move(ClusterPorts& ports, RegionInfo region,
                                            ServerName target) {
  AssignOptions options = spread_by_id(region);
  options.target = std::move(target);
  return {ports, TransitKind::kMove, std::move(region), std::move(options)};
}

TransitRegionState TransitRegionState::reopen(ClusterPorts& ports, RegionInfo region) {
  AssignOptions options = spread_by_id(region);
  options.retain = true;
  return {ports, TransitKind::kReopen, std::move(region), std::move(options)};
}

LockSet TransitRegionState::locks() const {
  return LockSet().region(region_.table.name_space, region_.table.table, region_.id,
                          LockMode::kExclusive);
}

Priority TransitRegionState::priority() const {
  return is_meta(region_.table) ? Priority::kMeta : Priority::kNormal;
}

LogKind TransitRegionState::log_kind() const {
  return is_meta(region_.table) ? LogKind::kMeta : LogKind::kUser;
}

TransitRegionState::Flow TransitRegionState::execute_from_state(Step step, StepContext& ctx) {
  switch (step) {
    case Step::kGetAssignCandidate:
      return get_assign_candidate(ctx);
    case Step::kOpen:
      return open(ctx);
    case Step::kConfirmOpened:
      return confirm_opened(ctx);
    case Step::kClose:
      return close(ctx);
    case Step::kConfirmClosed:
      return confirm_closed(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.TransitRegionState has no such step"});
}

TransitRegionState::Flow TransitRegionState::get_assign_candidate(StepContext& ctx) {
  const auto* read = ctx.await<Result<std::optional<RegionRow>>>(
      [&](auto done) { ports_->catalogue.read_region(region_.id, std::move(done)); });
  const auto* live = ctx.await<Result<std::vector<ServerName>>>(
      [&](auto done) { ports_->servers.live_servers(std::move(done)); });
  if (read == nullptr || live == nullptr) return wait();
  if (!read->ok()) return retry(read->status());
  if (!live->ok()) return retry(live->status());
  const std::optional<RegionRow>& row = read->value();
  ServerState home = ServerState::kOnline;
  if (row && !row->server.empty()) {
    const auto* server = ctx.await<Result<ServerRow>>(
        [&](auto done) { ports_->catalogue.read_server(row->server, std::move(done)); });
    if (server == nullptr) return wait();
    if (!server->ok()) return retry(server->status());
    home = server->value().state;
  }

  if (!begun_) {
    // The row of the catalogue's own table is in the catalogue, which needs this region to be read.
    std::optional<TableRow> table;
    if (!is_meta(region_.table)) {
      const auto* found = ctx.await<Result<std::optional<TableRow>>>(
          [&](auto done) { ports_->catalogue.read_table(region_.table, std::move(done)); });
      if (found == nullptr) return wait();
      if (!found->ok()) return retry(found->status());
      table = found->value();
    }
    if (std::optional<Flow> end = begin(row, table, home)) return *std::move(end);
    // From here on every answer ends the step or is a retry, so the fields may change.
    closes_again_ = kind_ == TransitKind::kAssign && is_disabled(table);
    begun_ = true;
    // Somebody has begun to open it there and was ended by an operator.
    if (row->state == RegionState::kOpening) unsure_of_ = row->server;
    const bool reopens_closed = kind_ == TransitKind::kReopen && !is_placed(row->state);
    if (kind_ != TransitKind::kAssign && !reopens_closed) return next(Step::kClose);
  }
  if (!row) return retry({StatusCode::kNotFound, to_string(region_) + " has left the catalogue"});
  if (!is_dead(home)) {
    // A server that lives may serve it: it goes nowhere else before that server has closed it.
    if (row->state == RegionState::kClosing) return next(Step::kClose);
    if (row->state == RegionState::kOpen) return next(Step::kConfirmOpened);
    if (row->state == RegionState::kOpening && row->server == unsure_of_) {
      target_ = row->server;  // even if it is not among the live ones at the moment
      sequence_ = row->open_sequence;
      return next(Step::kOpen);
    }
  }
  return choose(ctx, *row, live->value());
}

std::optional<TransitRegionState::Flow> TransitRegionState::begin(
    const std::optional<RegionRow>& row, const std::optional<TableRow>& table,
    ServerState home) const {
  if (kind_ == TransitKind::kAssign && !options_.from.empty()) {
    const bool still_there = row && row->server == options_.from && is_placed(row->state);
    if (still_there) return std::nullopt;
    return done(row ? to_string(row->server) : std::string());
  }
  if (!row) {
    return fail({StatusCode::kNotFound, to_string(region_) + " is not in the catalogue"});
  }
  // The lock, the rank and the log that are waited for follow from the table that it names.
  if (row->region != region_) {
    return fail({StatusCode::kNotFound,
                 to_string(region_) + " is not in the catalogue with these keys; read its row"});
  }
  if (kind_ == TransitKind::kUnassign) {
    if (!is_meta(region_.table)) return std::nullopt;
    return fail({StatusCode::kFailedPrecondition,
                 "the region of the catalogue cannot be closed, because nothing works without it; "
                 "move it"});
  }
  if (row->state == RegionState::kSplit) {
    return fail({StatusCode::kFailedPrecondition,
                 to_string(region_) + " was split or merged; use the regions in its place"});
  }
  if (is_disabled(table)) {
    return fail({StatusCode::kFailedPrecondition, "table " + to_string(region_.table) + " is " +
                                                      std::string(to_string(table->state)) +
                                                      "; enable it to open its regions"});
  }
  const bool open = row->state == RegionState::kOpen && !is_dead(home);
  switch (kind_) {
    case TransitKind::kAssign:
      if (open) return done(to_string(row->server));
      break;
    case TransitKind::kMove:
      if (row->state != RegionState::kOpen) {
        return fail({StatusCode::kFailedPrecondition, to_string(region_) + " is " +
                                                          std::string(to_string(row->state)) +
                                                          "; only an open region can be moved"});
      }
      if (open && row->server == options_.target) return done(to_string(row->server));
      break;
    case TransitKind::kUnassign:
    case TransitKind::kReopen:
      break;
  }
  return std::nullopt;
}

TransitRegionState::Flow TransitRegionState::choose(StepContext& ctx, const RegionRow& row,
                                                    const std::vector<ServerName>& live) {
  std::vector<ServerName> all;
  std::vector<ServerName> candidates;
  for (const ServerName& server : live) {
    if (server == options_.from) continue;
    all.push_back(server);
    if (!contains(avoided_, server)) candidates.push_back(server);
  }
  if (all.empty()) {
    return retry({StatusCode::kUnavailable,
                  "no live region server for " + to_string(region_) + "; start one"});
  }
  const bool round_is_over = candidates.empty();
  const std::uint32_t over_limit =
      failed_openings_ < kFailedOpeningsMax ? 0 : failed_openings_ - kFailedOpeningsMax + 1;
  const std::uint32_t pauses = std::min(std::max(round_is_over ? 1U : 0U, over_limit), kPausesMax);
  if (ctx.attempt() <= pauses) {
    return retry({StatusCode::kUnavailable, to_string(region_) + " could not be opened (" +
                                                std::to_string(failed_openings_) +
                                                " times); the last one: " + reason_});
  }
  if (round_is_over) {
    avoided_.clear();
    candidates = all;
  }

  const auto can_have = [&](const ServerName& server) { return contains(candidates, server); };
  if (row.state == RegionState::kOpening && can_have(row.server)) {
    target_ = row.server;  // it may be open there, or be about to be
  } else if (can_have(options_.target)) {
    target_ = options_.target;
  } else if (options_.retain && can_have(row.server)) {
    target_ = row.server;
  } else {
    target_ = candidates[(options_.spread + failed_openings_) % candidates.size()];
  }
  sequence_ = row.open_sequence;
  return next(Step::kOpen);
}

TransitRegionState::Flow TransitRegionState::open(StepContext& ctx) {
  const auto asked_before =
      target_ == unsure_of_ ? OpenRegion::Asked::kPerhaps : OpenRegion::Asked::kNever;
  ctx.spawn(OpenRegion(*ports_, region_, target_, sequence_, asked_before));
  return next(Step::kConfirmOpened);
}

TransitRegionState::Flow TransitRegionState::confirm_opened(StepContext& ctx) {
  const auto* read = ctx.await<Result<std::optional<RegionRow>>>(
      [&](auto done) { ports_->catalogue.read_region(region_.id, std::move(done)); });
  if (read == nullptr) return wait();
  if (!read->ok()) return retry(read->status());
  if (!read->value()) {
    return retry({StatusCode::kNotFound, to_string(region_) + " has left the catalogue"});
  }
  const RegionRow& row = *read->value();
  const auto* home = ctx.await<Result<ServerRow>>(
      [&](auto done) { ports_->catalogue.read_server(row.server, std::move(done)); });
  if (home == nullptr) return wait();
  if (!home->ok()) return retry(home->status());

  if (is_placed(row.state) && is_dead(home->value().state)) return leave_dead_home(ctx, row.server);
  if (row.state == RegionState::kOpen) {
    return ends_closed() ? next(Step::kClose) : done(to_string(row.server));
  }
  if (row.state == RegionState::kOpening && row.server == target_) return opening_failed(ctx);
  // The target was dead before the child could record anything.
  if (!contains(avoided_, target_)) avoided_.push_back(target_);
  return next(Step::kGetAssignCandidate);
}

TransitRegionState::Flow TransitRegionState::opening_failed(StepContext& ctx) {
  if (failed_openings_ + 1 >= kFailedOpeningsMax) {
    const auto* given_up = ctx.await<Result<Applied>>([&](auto done) {
      ports_->catalogue.write(
          {.effect_key = ctx.effect_key() + "/failed_open",
           .regions = {{region_, RegionState::kFailedOpen, target_, sequence_}}},
          std::move(done));
    });
    if (given_up == nullptr) return wait();
    if (!given_up->ok()) return retry(given_up->status());
  }
  const std::vector<ChildOutcome> children = ctx.children();
  if (!children.empty()) reason_ = std::string(children.back().result);
  if (!contains(avoided_, target_)) avoided_.push_back(target_);
  unsure_of_ = {};  // it has answered
  ++failed_openings_;
  return next(Step::kGetAssignCandidate);
}

TransitRegionState::Flow TransitRegionState::leave_dead_home(StepContext& ctx,
                                                             const ServerName& home) {
  const auto* recovered = ctx.await<Status>(
      [&](auto done) { ports_->servers.when_recovered(home, log_kind(), std::move(done)); });
  if (recovered == nullptr) return wait();
  if (!recovered->ok()) return retry(*recovered);
  return next(Step::kGetAssignCandidate);
}

TransitRegionState::Flow TransitRegionState::close(StepContext& ctx) {
  const auto* read = ctx.await<Result<std::optional<RegionRow>>>(
      [&](auto done) { ports_->catalogue.read_region(region_.id, std::move(done)); });
  if (read == nullptr) return wait();
  if (!read->ok()) return retry(read->status());
  if (!read->value()) {
    return retry({StatusCode::kNotFound, to_string(region_) + " has left the catalogue"});
  }
  const RegionRow& row = *read->value();
  switch (row.state) {
    case RegionState::kOpen:
    case RegionState::kClosing:
      ctx.spawn(CloseRegion(*ports_, region_, row.server));
      return next(Step::kConfirmClosed);
    case RegionState::kOpening:  // CONFIRM_CLOSED finds out whether its server is dead
    case RegionState::kClosed:
    case RegionState::kSplit:
      return next(Step::kConfirmClosed);
    case RegionState::kAbnormallyClosed:
      return next(Step::kGetAssignCandidate);
    case RegionState::kFailedOpen:
      break;
  }
  // Nobody has it. It counts as closed unless edits of a dead server wait to be replayed.
  const auto* edits = ctx.await<Result<bool>>(
      [&](auto done) { ports_->files.has_recovered_edits({region_}, std::move(done)); });
  if (edits == nullptr) return wait();
  if (!edits->ok()) return retry(edits->status());
  if (edits->value()) return next(Step::kGetAssignCandidate);
  const auto* closed = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write(
        {.effect_key = ctx.effect_key() + "/closed",
         .regions = {{region_, RegionState::kClosed, row.server, row.open_sequence}}},
        std::move(done));
  });
  if (closed == nullptr) return wait();
  if (!closed->ok()) return retry(closed->status());
  return next(Step::kConfirmClosed);
}

TransitRegionState::Flow TransitRegionState::confirm_closed(StepContext& ctx) {
  const auto* read = ctx.await<Result<std::optional<RegionRow>>>(
      [&](auto done) { ports_->catalogue.read_region(region_.id, std::move(done)); });
  if (read == nullptr) return wait();
  if (!read->ok()) return retry(read->status());
  if (!read->value()) {
    return retry({StatusCode::kNotFound, to_string(region_) + " has left the catalogue"});
  }
  const RegionRow& row = *read->value();
  switch (row.state) {
    case RegionState::kClosed:
    case RegionState::kSplit:
      return ends_closed() ? done(to_string(row.server)) : next(Step::kGetAssignCandidate);
    case RegionState::kFailedOpen:
      return next(Step::kClose);
    case RegionState::kOpening:
    case RegionState::kOpen:
    case RegionState::kClosing:
    case RegionState::kAbnormallyClosed:
      break;
  }
  const auto* home = ctx.await<Result<ServerRow>>(
      [&](auto done) { ports_->catalogue.read_server(row.server, std::move(done)); });
  if (home == nullptr) return wait();
  if (!home->ok()) return retry(home->status());
  if (is_dead(home->value().state)) return leave_dead_home(ctx, row.server);
  if (row.state == RegionState::kOpening) return next(Step::kGetAssignCandidate);

  // The server lives and did not close the region.
  const std::vector<ChildOutcome> children = ctx.children();
  if (ctx.attempt() <= std::min(failed_closings_ + 1, kPausesMax)) {
    const std::string why(children.empty() ? std::string_view() : children.back().result);
    return retry({StatusCode::kUnavailable, to_string(region_) + " could not be closed (" +
                                                std::to_string(failed_closings_ + 1) +
                                                " times); the last one: " + why});
  }
  ++failed_closings_;
  return next(Step::kClose);
}

}  // namespace pv2
