// SPDX-License-Identifier: Apache-2.0
//
// ResourceRecovery: acquires and reads a resource, as often as it has to. A recovery that fails
// leaves nothing behind that could keep the next one from working.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/log.h>
#include <pv2/base/status.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pv2/idempotency/resource_adapter.h"

namespace pv2 {

/// Used by one thread at a time.
template <class T>
class ResourceRecovery {
 public:
  using View = std::shared_ptr<const ResourceView<T>>;

  ResourceRecovery(std::unique_ptr<ResourceAdapter<T>> adapter, ResourceOptions options)
      : adapter_(std::move(adapter)), options_(std::move(options)) {
    if (!options_.clock) options_.clock = std::make_shared<SystemClock>();
    unsafe_ = why_unsafe();  // here, where no lock is held while the log is called
  }

  [[nodiscard]] std::string name() const { return adapter_->name(); }

  /// Acquires the lock and reads the resource; the view's version follows that of `last`.
  ///
  /// kUnavailable: the adapter failed, or the lock service has gone back to an older grant; the
  /// text says which. During the back-off this fails with the last failure, without a call of the
  /// adapter. kInvalidArgument: nobody would refuse a late write.
  [[nodiscard]] Result<View> recover(const View& last) {
    if (!unsafe_.ok()) return unsafe_;
    const SteadyTime now = options_.clock->steady_now();
    if (!failure_.ok() && now < not_before_) return failure_.with_context(unavailable());
    Result<View> view = acquire(last);
    if (view.ok()) {
      failure_ = Status();
      delay_ = Duration::zero();
    } else {
      failure_ = Status(StatusCode::kUnavailable, view.status().to_string());
      delay_ = std::min(std::max(delay_ * 2, options_.backoff), options_.backoff_max);
      not_before_ = later(options_.clock->steady_now(), delay_);
      return failure_.with_context(unavailable());
    }
    return view;
  }

 private:
  [[nodiscard]] std::string unavailable() const { return "this process cannot acquire " + name(); }

  // OK, or why nobody would refuse a late write. Logs that some late writes are done.
  [[nodiscard]] Status why_unsafe() const {
    const Fencing fencing = adapter_->fencing();
    if (fencing.by == Fencing::By::kResource) return Status();
    if (fencing.lock_delay <= Duration::zero() && !options_.allow_late_writes) {
      return Status(StatusCode::kInvalidArgument,
                    name() +
                        " does not compare tokens and its lock service has no lock delay, so a "
                        "write that comes late would be done. Give it one of the two, or set "
                        "allow_late_writes");
    }
    log(options_.log, LogLevel::kWarning,
        name() + " does not compare tokens: a write that comes later than its lock delay is done");
    return Status();
  }

  [[nodiscard]] Result<View> acquire(const View& last) {
    const Result<FencingToken> token = adapter_->acquire();
    if (!token.ok()) return token.status();
    if (highest_ && *token <= *highest_) {
      return Status(StatusCode::kInternal,
                    "the lock was granted with epoch " + std::to_string(token->epoch) +
                        ", and before with " + std::to_string(highest_->epoch) +
                        ": the lock service has forgotten grants, or does not count them all");
    }
    highest_ = *token;
    Result<T> info = adapter_->read(*token);
    if (!info.ok()) return info.status();
    const std::uint64_t version = (last ? last->version : 0) + 1;
    return std::make_shared<const ResourceView<T>>(
        ResourceView<T>{*std::move(info), version, *token});
  }

  std::unique_ptr<ResourceAdapter<T>> adapter_;
  ResourceOptions options_;
  Status unsafe_;   // constant
  Status failure_;  // of the last recovery
  SteadyTime not_before_{};
  Duration delay_{};
  std::optional<FencingToken> highest_;
};

/// The failure of a change of `name`, and whether the recovery after it worked.
[[nodiscard]] inline Status after_recovery(const Status& failure, const std::string& name,
                                           const Status& recovered) {
  const std::string what = "the change of " + name + " failed, and this process ";
  return failure.with_context(recovered.ok() ? what + "has acquired it again"
                                             : what + "could not acquire it again (" +
                                                   recovered.to_string() + ")");
}

/// The failure of a recovery before a change.
[[nodiscard]] inline Status not_called(const Status& failure) {
  return failure.with_context("nothing was written");
}

/// The answer to a caller whose view is of an earlier grant.
[[nodiscard]] inline Status stale_view(const std::string& name) {
  return Status(StatusCode::kFenced,
                "this process has acquired " + name +
                    " again since the caller looked at it, so what the caller checked may not hold "
                    "any more; nothing was written. Look at it again");
}

}  // namespace pv2
