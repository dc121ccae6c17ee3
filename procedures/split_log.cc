// SPDX-License-Identifier: Apache-2.0
//
// The steps of SplitLog. The places for splitters are volatile: the port keeps them per procedure,
// and a server that has died has none.

#include "pv2/procedures/split_log.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "failure_pauses.h"
#include "pv2/procedures/split_log_remote.h"

namespace pv2 {

SplitLog::SplitLog(ClusterPorts& ports, ServerName dead, LogKind kind, std::string log)
    : ports_(&ports), dead_(std::move(dead)), kind_(kind), log_(std::move(log)) {}

SplitLog::Flow SplitLog::execute_from_state(Step step, StepContext& ctx) {
  switch (step) {
    case Step::kAcquireSplitWalWorker:
      return acquire_split_wal_worker(ctx);
    case Step::kDispatchWalToWorker:
      return dispatch_wal_to_worker(ctx);
    case Step::kReleaseSplitWorker:
      return release_split_worker(ctx);
  }
  return fail({StatusCode::kInternal, "cluster.SplitLog has no such step"});
}

SplitLog::Flow SplitLog::acquire_split_wal_worker(StepContext& ctx) {
  const auto* worker = ctx.await<Result<ServerName>>(
      [&](auto done) { ports_->servers.acquire_splitter(ctx.id(), worker_, std::move(done)); });
  if (worker == nullptr) return wait();
  if (!worker->ok()) return retry(worker->status());
  worker_ = worker->value();
  return next(Step::kDispatchWalToWorker);
}

SplitLog::Flow SplitLog::dispatch_wal_to_worker(StepContext& ctx) {
  ctx.spawn(SplitLogRemote(*ports_, worker_, dead_, log_));
  return next(Step::kReleaseSplitWorker);
}

SplitLog::Flow SplitLog::release_split_worker(StepContext& ctx) {
  ports_->servers.release_splitter(ctx.id());
  const auto* left = ctx.await<Result<std::vector<std::string>>>(
      [&](auto done) { ports_->logs.logs_of(dead_, kind_, std::move(done)); });
  if (left == nullptr) return wait();
  if (!left->ok()) return retry(left->status());
  const auto is_this = [this](const std::string& log) { return file_of(log) == file_of(log_); };
  if (std::ranges::none_of(left->value(), is_this)) return done(to_string(worker_));

  // The first failure is most often the death of the worker: another one tries at once.
  if (ctx.attempt() <= std::min(failures_, kPausesMax)) {
    const std::vector<ChildOutcome> children = ctx.children();
    const std::string why(children.empty() ? std::string_view() : children.back().result);
    return retry({StatusCode::kUnavailable,
                  "log " + log_ + " of " + to_string(dead_) + " could not be split (" +
                      std::to_string(failures_ + 1) + " times); the last one: " + why});
  }
  ++failures_;
  worker_ = {};
  return next(Step::kAcquireSplitWalWorker);
}

}  // namespace pv2
