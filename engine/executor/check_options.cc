// SPDX-License-Identifier: Apache-2.0
//
// Each check refuses one option whose value cannot work, and says in a sentence what is wrong with
// the value. The first refusal is the answer.

#include "executor/check_options.h"

#include <chrono>
#include <string>

#include "model/check_limits.h"
#include "pv2/engine/executor_options.h"
#include "steps/row_bindings.h"

namespace pv2 {
namespace {

Status check_retry(const RetryPolicy& retry) {
  const auto refused = [](const std::string& what) {
    return Status(StatusCode::kInvalidArgument, "ExecutorOptions.retry: RetryPolicy::" + what);
  };
  if (retry.base < Duration::zero()) return refused("base is negative; give the first delay");
  if (retry.cap < Duration::zero()) return refused("cap is negative; give the longest delay");
  if (retry.jitter_percent > 100) {
    return refused("jitter_percent is " + std::to_string(retry.jitter_percent) +
                   "; at most as much again as the delay itself (100) is added");
  }
  return Status();
}

}  // namespace

Status check_options(const ExecutorOptions& options) {
  if (!options.store) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.store is missing; pv2::leveldb(path) or pv2::noop() makes one");
  }
  if (!options.registry.status().ok()) return options.registry.status();
  if (options.retention.ttl != Duration::zero() &&
      options.retention.ttl < std::chrono::minutes(30)) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.retention.ttl is shorter than 30 minutes: a client that still "
                  "retries would have its work done twice");
  }
  if (Status status = check_retry(options.retry); !status.ok()) return status;
  if (options.deadlock_policy > DeadlockPolicy::kFailYoungest) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.deadlock_policy has a value that DeadlockPolicy does not have");
  }
  if (options.unreadable > UnreadableRecords::kSetAside) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.unreadable has a value that UnreadableRecords does not have");
  }
  if (options.load > Load::kInBackground) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.load has a value that Load does not have");
  }
  if (options.load == Load::kInBackground && options.workers == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.load is kInBackground, but an executor without workers has no "
                  "thread that could load; use kBeforeOpenReturns");
  }
  if (options.stuck_after < Duration::zero()) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.stuck_after is negative; 0 means that no step is reported");
  }
  if (Status status = check_row_bindings(options.row_bindings); !status.ok()) return status;
  if (Status status = check_limits_of(options); !status.ok()) return status;
  if (options.reserved_workers != 0 && options.reserved_workers >= options.workers) {
    return Status(StatusCode::kInvalidArgument,
                  "ExecutorOptions.reserved_workers is " +
                      std::to_string(options.reserved_workers) + " of " +
                      std::to_string(options.workers) +
                      " workers; at least one has to be left for other work");
  }
  return Status();
}

}  // namespace pv2
