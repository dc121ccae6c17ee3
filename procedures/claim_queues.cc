// SPDX-License-Identifier: Apache-2.0
//
// The steps of ClaimQueues. Claiming the same queue twice has one effect, so another server may be
// asked whenever the first one is not known to have done it and cannot be asked.

#include "pv2/procedures/claim_queues.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "remote_report.h"
#include "stable_hash.h"

namespace pv2 {

ClaimQueues::ClaimQueues(ClusterPorts& ports, ServerName dead, std::string peer)
    : ports_(&ports), dead_(std::move(dead)), peer_(std::move(peer)) {}

LockSet ClaimQueues::locks() const { return LockSet().peer(peer_, LockMode::kShared); }

ClaimQueues::Flow ClaimQueues::execute_from_state(Step step, StepContext& ctx) {
  switch (step) {
    case Step::kChooseServer:
      return choose_server(ctx);
    case Step::kDispatch:
      return dispatch(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.ClaimQueues has no such step"});
}

ClaimQueues::Flow ClaimQueues::choose_server(StepContext& ctx) {
  const auto* row = ctx.await<Result<ServerRow>>(
      [&](auto done) { ports_->catalogue.read_server(dead_, std::move(done)); });
  const auto* live = ctx.await<Result<std::vector<ServerName>>>(
      [&](auto done) { ports_->servers.live_servers(std::move(done)); });
  if (row == nullptr || live == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (!is_dead(row->value().state)) {
    return fail({StatusCode::kFailedPrecondition,
                 "server " + to_string(dead_) + " is not dead, and ships its queues itself"});
  }
  if (!live->ok()) return retry(live->status());

  std::vector<ServerName> all;
  std::vector<ServerName> candidates;
  for (const ServerName& server : live->value()) {
    if (server == dead_) continue;
    all.push_back(server);
    if (std::ranges::find(avoided_, server) == avoided_.end()) candidates.push_back(server);
  }
  if (all.empty()) {
    return retry({StatusCode::kUnavailable, "no live region server can claim the queue of " +
                                                to_string(dead_) + " for peer " + peer_ +
                                                "; start one"});
  }
  if (candidates.empty()) {
    if (ctx.attempt() == 1) {
      return retry({StatusCode::kUnavailable, "no server could claim the queue of " +
                                                  to_string(dead_) + " for peer " + peer_ +
                                                  "; the last one: " + reason_});
    }
    avoided_.clear();
    candidates = all;
  }
  target_ = candidates[internal::stable_hash(peer_ + to_string(dead_)) % candidates.size()];
  return next(Step::kDispatch);
}

ClaimQueues::Flow ClaimQueues::dispatch(StepContext& ctx) {
  const RemoteOperation operation{.kind = RemoteKind::kClaimQueues,
                                  .server = target_,
                                  .procedure = ctx.id(),
                                  .effect_key = ctx.effect_key() + "/claim",
                                  .dead = dead_,
                                  .peer = peer_};
  if (const auto report = find_report(ctx, operation)) {
    if (report->done) return done(to_string(target_));
    return choose_another(to_string(target_) + " failed: " + report->reason);
  }
  const auto* sent = ctx.await<DispatchOutcome>(
      [&](auto done) { ports_->servers.dispatch(operation, std::move(done)); });
  if (sent == nullptr) return wait();
  switch (sent->kind) {
    case DispatchOutcome::Kind::kDone:
      break;
    case DispatchOutcome::Kind::kRefused:
    case DispatchOutcome::Kind::kNotSent:
      return choose_another(to_string(target_) + " did not take it: " + sent->reason);
    case DispatchOutcome::Kind::kUnknown: {
      const auto* row = ctx.await<Result<ServerRow>>(
          [&](auto done) { ports_->catalogue.read_server(target_, std::move(done)); });
      if (row == nullptr) return wait();
      if (!row->ok()) return retry(row->status());
      if (is_dead(row->value().state)) return choose_another(to_string(target_) + " crashed");
      return unsure({StatusCode::kUnknownOutcome,
                     to_string(target_) + " may or may not claim the queue of " + to_string(dead_) +
                         " (" + sent->reason + "); asking again"});
    }
  }
  const auto* crashed =
      ctx.await<Status>([&](auto done) { ports_->servers.when_crashed(target_, std::move(done)); });
  if (crashed == nullptr) return wait();
  if (!crashed->ok()) return retry(*crashed);
  return choose_another(to_string(target_) + " crashed");
}

ClaimQueues::Flow ClaimQueues::choose_another(std::string reason) {
  avoided_.push_back(target_);
  reason_ = std::move(reason);
  return next(Step::kChooseServer);
}

}  // namespace pv2
