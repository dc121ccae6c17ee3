// SPDX-License-Identifier: Apache-2.0
//
// The one step of RefreshPeer: it looks for a report first, so a run after a crash that has one
// asks nobody.

#include "pv2/procedures/refresh_peer.h"

#include <chrono>

#include "remote_report.h"

namespace pv2 {
namespace {

// The pause before a server that refused, or failed, is asked again. One second: what stops it
// (starting, overloaded) changes no faster.
constexpr Duration kFailurePause = std::chrono::seconds(1);

}  // namespace

RefreshPeer::Flow RefreshPeer::execute_from_state(RefreshPeerStep /*step*/, StepContext& ctx) {
  const RemoteOperation operation{.kind = RemoteKind::kRefreshPeer,
                                  .server = server_,
                                  .procedure = ctx.id(),
                                  .effect_key = ctx.effect_key() + "/refresh",
                                  .peer = peer_};
  if (const auto report = find_report(ctx, operation)) {
    return report->done ? done(to_string(server_)) : ask_anew(ctx);
  }
  const auto* crashed =
      ctx.await<Status>([&](auto done) { ports_->servers.when_crashed(server_, std::move(done)); });
  if (crashed != nullptr && crashed->ok()) return done(to_string(server_) + " crashed");
  if (crashed != nullptr) return retry(*crashed);
  const auto* sent = ctx.await<DispatchOutcome>(
      [&](auto done) { ports_->servers.dispatch(operation, std::move(done)); });
  if (sent == nullptr) return wait();
  switch (sent->kind) {
    case DispatchOutcome::Kind::kDone:
      return wait();
    case DispatchOutcome::Kind::kRefused:
      return ask_anew(ctx);
    case DispatchOutcome::Kind::kNotSent:
      return retry(
          {StatusCode::kUnavailable, to_string(server_) + " was not reached: " + sent->reason});
    case DispatchOutcome::Kind::kUnknown:
      return unsure({StatusCode::kUnknownOutcome, to_string(server_) +
                                                      " may or may not have read peer " + peer_ +
                                                      " (" + sent->reason + "); asking again"});
  }
  return retry({StatusCode::kInternal, "a dispatch ended in a way that is not known here"});
}

RefreshPeer::Flow RefreshPeer::ask_anew(StepContext& ctx) {
  // Another visit of the step has another effect key, which the server has not refused.
  if (!ctx.timed_out()) return wait_for(kFailurePause);
  return next(RefreshPeerStep::kRefresh);
}

}  // namespace pv2
