// SPDX-License-Identifier: Apache-2.0
//
// The steps of CloseRegion. It ends without a report only when the server is recorded as crashed or
// has not begun: a region that may be closed or not is asked about again.

#include "pv2/procedures/close_region.h"

#include <utility>

#include "remote_report.h"

namespace pv2 {

CloseRegion::CloseRegion(ClusterPorts& ports, RegionInfo region, ServerName server)
    : ports_(&ports), region_(std::move(region)), server_(std::move(server)) {}

CloseRegion::Flow CloseRegion::execute_from_state(CloseRegionStep step, StepContext& ctx) {
  switch (step) {
    case CloseRegionStep::kDispatch:
      return dispatch(ctx);
    case CloseRegionStep::kReportSucceed:
      return report_succeed(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.CloseRegion has no such step"});
}

CloseRegion::Flow CloseRegion::dispatch(StepContext& ctx) {
  const RemoteOperation operation{.kind = RemoteKind::kCloseRegion,
                                  .server = server_,
                                  .procedure = ctx.id(),
                                  .effect_key = ctx.effect_key() + "/close",
                                  .region = region_};
  if (const auto report = find_report(ctx, operation)) {
    if (!report->done) return done(to_string(server_) + " could not close it: " + report->reason);
    reported_sequence_ = report->sequence;
    return next(CloseRegionStep::kReportSucceed);
  }

  const auto* closing = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write({.effect_key = ctx.effect_key() + "/closing",
                             .regions = {{region_, RegionState::kClosing, server_, 0}}},
                            std::move(done));
  });
  if (closing == nullptr) return wait();
  switch (closing->status().code()) {
    case StatusCode::kOk:
      break;
    case StatusCode::kFenced:              // the server is dead
    case StatusCode::kFailedPrecondition:  // the region is not open there any more
      return done(std::string(closing->status().message()));
    default:
      return retry(closing->status());
  }

  const auto* sent = ctx.await<DispatchOutcome>(
      [&](auto done) { ports_->servers.dispatch(operation, std::move(done)); });
  if (sent == nullptr) return wait();
  switch (sent->kind) {
    case DispatchOutcome::Kind::kDone:
      break;
    case DispatchOutcome::Kind::kRefused:
      return done(to_string(server_) + " refused to close it: " + sent->reason);
    case DispatchOutcome::Kind::kNotSent:
    case DispatchOutcome::Kind::kUnknown:
      return ask_again(ctx, sent->reason);
  }

  const auto* crashed =
      ctx.await<Status>([&](auto done) { ports_->servers.when_crashed(server_, std::move(done)); });
  if (crashed == nullptr) return wait();
  if (!crashed->ok()) return retry(*crashed);
  return done(to_string(server_) + " crashed");
}

CloseRegion::Flow CloseRegion::ask_again(StepContext& ctx, const std::string& reason) {
  const auto* row = ctx.await<Result<ServerRow>>(
      [&](auto done) { ports_->catalogue.read_server(server_, std::move(done)); });
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (is_dead(row->value().state)) return done(to_string(server_) + " crashed");
  return unsure({StatusCode::kUnknownOutcome,
                 "region " + region_.id + " may or may not be closed on " + to_string(server_) +
                     " (" + reason + "); asking again until it answers or is dead"});
}

CloseRegion::Flow CloseRegion::report_succeed(StepContext& ctx) {
  const auto* closed = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write(
        {.effect_key = ctx.effect_key() + "/closed",
         .regions = {{region_, RegionState::kClosed, server_, reported_sequence_}}},
        std::move(done));
  });
  if (closed == nullptr) return wait();
  if (closed->ok()) return done();
  // The server crashed right after its report, and a ServerCrash has marked the row.
  if (closed->status().code() == StatusCode::kFailedPrecondition) {
    return done(std::string(closed->status().message()));
  }
  return retry(closed->status());
}

}  // namespace pv2
