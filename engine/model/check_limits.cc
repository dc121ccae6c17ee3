// SPDX-License-Identifier: Apache-2.0
//
// Messages begin with the name of the thing, as the caller spelt it.

#include "model/check_limits.h"

#include <fmt/format.h>
#include <pv2/base/assert.h>

#include <algorithm>

#include "pv2/engine/executor_options.h"

namespace pv2 {
namespace {

Status invalid(std::string why) { return Status(StatusCode::kInvalidArgument, std::move(why)); }

Status check_threads(std::string_view what, unsigned threads) {
  if (threads <= limits::kThreads) return Status();
  return invalid("ExecutorOptions." + std::string(what) + " is " + std::to_string(threads) +
                 "; at most " + std::to_string(limits::kThreads) + " threads are started");
}

bool is_known(ResourceClass cls) {
  return (cls >= ResourceClass::kGlobal && cls <= ResourceClass::kType) ||
         cls >= ResourceClass::kHostFirst;
}

}  // namespace

std::string shortened(std::string_view text, std::size_t shown) {
  if (text.size() <= shown) return std::string(text);
  return fmt::format("{}...", text.substr(0, shown));
}

Status check_bytes(std::string_view what, std::size_t bytes, std::size_t most) {
  if (bytes <= most) return Status();
  return invalid(std::string(what) + " has " + std::to_string(bytes) + " bytes; at most " +
                 std::to_string(most) + " are allowed");
}

Status check_key(const ResourceKey& key) {
  if (!is_known(key.cls)) {
    return invalid("the key '" + shortened(key.name) + "' has class " +
                   std::to_string(static_cast<unsigned>(key.cls)) +
                   ", which does not exist; a host's own classes begin at " +
                   std::to_string(static_cast<unsigned>(ResourceClass::kHostFirst)));
  }
  if (key.name.size() <= limits::kKeyNameBytes) return Status();
  return check_bytes("the name of the key " + to_string({key.cls, shortened(key.name)}),
                     key.name.size(), limits::kKeyNameBytes);
}

Status check_locks(const std::string& type, const LockSet& locks) {
  const std::size_t count = locks.requests().size();
  if (count > LockSet::kMaxRequests) {
    return invalid("a " + type + " asks for " + std::to_string(count) +
                   " locks, and LockSet::kMaxRequests (" + std::to_string(LockSet::kMaxRequests) +
                   ") is the most; lock what they have in common, or give the parts to children");
  }
  if (locks.scope() < LockScope::kOperation || locks.scope() > LockScope::kVisit) {
    return invalid("the locks of a " + type + " have a scope that LockScope does not have");
  }
  for (const LockRequest& request : locks.requests()) {
    if (request.mode != LockMode::kShared && request.mode != LockMode::kExclusive) {
      return invalid("a " + type + " locks " +
                     to_string({request.key.cls, shortened(request.key.name)}) +
                     " in a mode that LockMode does not have");
    }
    Status status = check_key(request.key);
    if (!status.ok()) return status.with_context("the locks of a " + type);
  }
  return Status();
}

Status check_limits_of(const ExecutorOptions& options) {
  PV2_ASSERT(options.store != nullptr, "the caller has checked that there is a store");
  Status status = check_threads("workers", options.workers);
  if (status.ok()) status = check_threads("pool_threads", options.pool_threads);
  if (!status.ok()) return status;
  if (options.pool_threads == 0 && options.workers != 0) {
    return invalid(
        "ExecutorOptions.pool_threads is 0, so no callback and no offloaded work would "
        "ever run; give it a thread");
  }
  if (options.stuck_after < Duration::zero()) {
    return invalid("ExecutorOptions.stuck_after is negative; give a time, or 0 to report no step");
  }
  if (options.max_live_procedures == 0) {
    return invalid(
        "ExecutorOptions.max_live_procedures is 0, so every submission would be refused");
  }
  if (options.row_bindings.size() > limits::kRowBindings) {
    return invalid("ExecutorOptions.row_bindings has " +
                   std::to_string(options.row_bindings.size()) + " entries; at most " +
                   std::to_string(limits::kRowBindings) +
                   ", as each row that is written is compared with all of them");
  }
  for (const RowBinding& binding : options.row_bindings) {
    status = check_bytes("a prefix of ExecutorOptions.row_bindings", binding.prefix.size(),
                         limits::kRowKeyBytes);
    if (status.ok()) status = check_key(binding.key).with_context("ExecutorOptions.row_bindings");
    if (!status.ok()) return status;
  }
  const StoreLimits store = options.store->limits();
  if (options.store->keeps_records() && (store.batch_bytes < limits::kBatchBytesMin ||
                                         store.batch_operations < limits::kBatchOperationsMin)) {
    return invalid("ExecutorOptions.store takes " + std::to_string(store.batch_operations) +
                   " rows and " + std::to_string(store.batch_bytes) +
                   " bytes in a batch; the engine needs at least " +
                   std::to_string(limits::kBatchOperationsMin) + " rows and " +
                   std::to_string(limits::kBatchBytesMin) + " bytes");
  }
  return status;
}

std::size_t record_bytes_max(const StoreLimits& limits) noexcept {
  return std::min(limits.batch_bytes, limits::kRecordBytes);
}

Status bounded(Status error) {
  if (error.message().size() <= limits::kErrorBytes) return error;
  return Status(error.code(), shortened(error.message(), limits::kErrorBytes));
}

}  // namespace pv2
