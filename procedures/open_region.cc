// SPDX-License-Identifier: Apache-2.0
//
// The steps of OpenRegion. The hard question is when it may end although a server may have the
// region: only when that server is recorded as crashed. docs/cluster.md has the table.

#include "pv2/procedures/open_region.h"

#include <utility>

#include "remote_report.h"

namespace pv2 {

OpenRegion::OpenRegion(ClusterPorts& ports, RegionInfo region, ServerName server,
                       std::uint64_t sequence, Asked asked_before)
    : ports_(&ports),
      region_(std::move(region)),
      server_(std::move(server)),
      sequence_(sequence),
      asked_before_(asked_before) {}

OpenRegion::Flow OpenRegion::execute_from_state(OpenRegionStep step, StepContext& ctx) {
  switch (step) {
    case OpenRegionStep::kDispatch:
      return dispatch(ctx);
    case OpenRegionStep::kReportSucceed:
      return report_succeed(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.OpenRegion has no such step"});
}

OpenRegion::Flow OpenRegion::dispatch(StepContext& ctx) {
  const RemoteOperation operation{.kind = RemoteKind::kOpenRegion,
                                  .server = server_,
                                  .procedure = ctx.id(),
                                  .effect_key = ctx.effect_key() + "/open",
                                  .region = region_,
                                  .sequence = sequence_};
  if (const auto report = find_report(ctx, operation)) {
    if (!report->done) return done(to_string(server_) + " could not open it: " + report->reason);
    reported_sequence_ = report->sequence;
    return next(OpenRegionStep::kReportSucceed);
  }

  const auto* opening = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write({.effect_key = ctx.effect_key() + "/opening",
                             .regions = {{region_, RegionState::kOpening, server_, sequence_}}},
                            std::move(done));
  });
  if (opening == nullptr) return wait();
  switch (opening->status().code()) {
    case StatusCode::kOk:
      break;
    case StatusCode::kFenced:              // the server is dead
    case StatusCode::kFailedPrecondition:  // the edits of an earlier server would be missed
      return done(std::string(opening->status().message()));
    default:
      return retry(opening->status());
  }

  const auto* sent = ctx.await<DispatchOutcome>(
      [&](auto done) { ports_->servers.dispatch(operation, std::move(done)); });
  if (sent == nullptr) return wait();
  switch (sent->kind) {
    case DispatchOutcome::Kind::kDone:
      break;
    case DispatchOutcome::Kind::kRefused:
      return done(to_string(server_) + " refused it: " + sent->reason);
    case DispatchOutcome::Kind::kNotSent:
      // This run has written the catalogue, and a dispatch always follows that write, so this was
      // the first one.
      if (opening->value() == Applied::kNow && asked_before_ == Asked::kNever) {
        return done(to_string(server_) + " was not reached: " + sent->reason);
      }
      return ask_again(ctx, sent->reason);
    case DispatchOutcome::Kind::kUnknown:
      return ask_again(ctx, sent->reason);
  }

  const auto* crashed =
      ctx.await<Status>([&](auto done) { ports_->servers.when_crashed(server_, std::move(done)); });
  if (crashed == nullptr) return wait();
  if (!crashed->ok()) return retry(*crashed);
  return done(to_string(server_) + " crashed");
}

OpenRegion::Flow OpenRegion::ask_again(StepContext& ctx, const std::string& reason) {
  // The server may have the operation. Another server may get the region only when this one is
  // known to serve nothing any more, which is what "crashed" in the catalogue means.
  const auto* row = ctx.await<Result<ServerRow>>(
      [&](auto done) { ports_->catalogue.read_server(server_, std::move(done)); });
  if (row == nullptr) return wait();
  if (!row->ok()) return retry(row->status());
  if (is_dead(row->value().state)) return done(to_string(server_) + " crashed");
  return unsure({StatusCode::kUnknownOutcome,
                 "region " + region_.id + " may or may not be open on " + to_string(server_) +
                     " (" + reason + "); asking again until it answers or is dead"});
}

OpenRegion::Flow OpenRegion::report_succeed(StepContext& ctx) {
  const auto* open = ctx.await<Result<Applied>>([&](auto done) {
    ports_->catalogue.write(
        {.effect_key = ctx.effect_key() + "/open",
         .regions = {{region_, RegionState::kOpen, server_, reported_sequence_}}},
        std::move(done));
  });
  if (open == nullptr) return wait();
  switch (open->status().code()) {
    case StatusCode::kOk:
      return done();
    case StatusCode::kFenced:
      return done(to_string(server_) + " crashed after it had opened the region");
    case StatusCode::kFailedPrecondition:  // the row was marked for another reason: look again
      return done(std::string(open->status().message()));
    default:
      return retry(open->status());
  }
}

}  // namespace pv2
