// SPDX-License-Identifier: Apache-2.0
//
// The steps of SplitLogRemote. Splitting a log twice writes the same files, so a server that may be
// at work is left as soon as it is dead, and one that was not reached at once.

#include "pv2/procedures/split_log_remote.h"

#include <utility>

#include "remote_report.h"

namespace pv2 {

SplitLogRemote::SplitLogRemote(ClusterPorts& ports, ServerName worker, ServerName dead,
                               std::string log)
    : ports_(&ports), worker_(std::move(worker)), dead_(std::move(dead)), log_(std::move(log)) {}

SplitLogRemote::Flow SplitLogRemote::execute_from_state(Step step, StepContext& ctx) {
  switch (step) {
    case Step::kDispatch:
      return dispatch(ctx);
    case Step::kArchive:
      return archive(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.SplitLogRemote has no such step"});
}

SplitLogRemote::Flow SplitLogRemote::dispatch(StepContext& ctx) {
  const RemoteOperation operation{.kind = RemoteKind::kSplitLog,
                                  .server = worker_,
                                  .procedure = ctx.id(),
                                  .effect_key = ctx.effect_key() + "/split",
                                  .dead = dead_,
                                  .log = log_};
  if (const auto report = find_report(ctx, operation)) {
    if (report->done) return next(Step::kArchive);
    return done(to_string(worker_) + " could not split it: " + report->reason);
  }
  const auto* sent = ctx.await<DispatchOutcome>(
      [&](auto done) { ports_->servers.dispatch(operation, std::move(done)); });
  if (sent == nullptr) return wait();
  switch (sent->kind) {
    case DispatchOutcome::Kind::kDone:
      break;
    case DispatchOutcome::Kind::kRefused:
      return done(to_string(worker_) + " refused it: " + sent->reason);
    case DispatchOutcome::Kind::kNotSent:
      return done(to_string(worker_) + " was not reached: " + sent->reason);
    case DispatchOutcome::Kind::kUnknown: {
      const auto* row = ctx.await<Result<ServerRow>>(
          [&](auto done) { ports_->catalogue.read_server(worker_, std::move(done)); });
      if (row == nullptr) return wait();
      if (!row->ok()) return retry(row->status());
      if (is_dead(row->value().state)) return done(to_string(worker_) + " crashed");
      return unsure({StatusCode::kUnknownOutcome,
                     to_string(worker_) + " may or may not split log " + log_ + " of " +
                         to_string(dead_) + " (" + sent->reason + "); asking again"});
    }
  }
  const auto* crashed =
      ctx.await<Status>([&](auto done) { ports_->servers.when_crashed(worker_, std::move(done)); });
  if (crashed == nullptr) return wait();
  if (!crashed->ok()) return retry(*crashed);
  return done(to_string(worker_) + " crashed");
}

SplitLogRemote::Flow SplitLogRemote::archive(StepContext& ctx) {
  const auto* archived =
      ctx.await<Status>([&](auto done) { ports_->logs.archive(dead_, log_, std::move(done)); });
  if (archived == nullptr) return wait();
  if (!archived->ok()) return retry(*archived);
  return done();
}

}  // namespace pv2
