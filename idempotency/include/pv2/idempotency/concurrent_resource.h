// SPDX-License-Identifier: Apache-2.0
//
// ConcurrentResource: like ExclusiveResource, for a resource that several threads of the lock's
// holder may modify at once, because no change depends on another. Changes run outside of any
// mutex. When many fail together, one of their threads recovers the resource, and the others return
// at once.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/status.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pv2/idempotency/resource_adapter.h"
#include "pv2/idempotency/resource_recovery.h"

namespace pv2 {

/// Thread-safe.
template <class T>
class ConcurrentResource {
 public:
  using View = std::shared_ptr<const ResourceView<T>>;

  explicit ConcurrentResource(std::unique_ptr<ResourceAdapter<T>> adapter,
                              ResourceOptions options = {})
      : name_(adapter->name()), recovery_(std::move(adapter), std::move(options)) {}

  /// Acquires and reads the resource, unless that was done before. look() does it too; modify()
  /// needs a view, so it does not.
  Status open() { return look().status(); }

  /// What the last recovery read. kUnavailable: another thread is recovering the resource, or the
  /// last recovery failed just now.
  [[nodiscard]] Result<View> look() PV2_EXCLUDES(mutex_) {
    const Moment now = moment();
    if (now.state == ResourceState::kReady && now.view != nullptr) return now.view;
    if (Status failed = recover(now.view); !failed.ok()) return failed;
    View view = moment().view;
    if (view == nullptr) return being_recovered();  // and the thread that did it has failed
    return view;
  }

  /// Calls `change(view)`, which writes to the resource with the view's token, and returns what
  /// `change` returns. Other threads may call this at the same time.
  ///
  /// When changes fail under one grant, one of their threads acquires and reads the resource again.
  /// Each failure has a text that says what became of that. When `change` throws, this does the
  /// same and throws the same.
  ///
  /// kFenced: the resource was acquired again after `seen` was made; `change` was not called.
  /// kUnavailable: another thread is recovering the resource, or the last recovery failed; `change`
  /// was not called.
  template <class Change>
  Status modify(const View& seen, Change&& change) PV2_EXCLUDES(mutex_) {
    const Moment now = moment();
    if (now.state == ResourceState::kRecovering) return not_called(being_recovered());
    if (now.state == ResourceState::kBroken) {
      if (Status failed = recover(now.view); !failed.ok()) return not_called(failed);
      return stale_view(name_);
    }
    if (now.view == nullptr || seen == nullptr || seen->version != now.view->version) {
      return stale_view(name_);
    }
    const Status failure = call(change, now.view);
    if (failure.ok()) return failure;
    return after_recovery(failure, name_, recover(now.view));
  }

  [[nodiscard]] ResourceState state() const { return moment().state; }

 private:
  // State and view of one moment.
  struct Moment {
    ResourceState state = ResourceState::kReady;
    View view;
  };

  template <class Change>
  Status call(Change& change, const View& view) {
    try {
      return change(*view);
    } catch (...) {
      try {
        (void)recover(view);
      } catch (...) {  // it stays broken; what the change threw matters
      }
      throw;
    }
  }
  [[nodiscard]] Status being_recovered() const {
    return Status(StatusCode::kUnavailable, "another thread is acquiring " + name_ + "; try again");
  }

  // Acquires and reads the resource again. Does nothing if another thread has done that since it
  // made the view `failed`; kUnavailable if another thread is just doing it.
  Status recover(const View& failed) PV2_EXCLUDES(mutex_) {
    View last;  // its version is followed, even if `failed` is an older one
    {
      MutexLock lock(mutex_);
      if (now_.state == ResourceState::kRecovering) return being_recovered();
      if (now_.state == ResourceState::kReady && now_.view != failed) return Status();
      now_.state = ResourceState::kRecovering;
      last = now_.view;
    }
    // Whoever has set kRecovering is alone here.
    std::optional<Result<View>> view;
    try {
      view.emplace(recovery_.recover(last));
    } catch (...) {
      end_recovery(ResourceState::kBroken, last);
      throw;
    }
    if (!view->ok()) {
      end_recovery(ResourceState::kBroken, last);
      return view->status();
    }
    end_recovery(ResourceState::kReady, *std::move(*view));
    return Status();
  }
  void end_recovery(ResourceState state, View view) PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    now_.state = state;
    now_.view.swap(view);
  }
  [[nodiscard]] Moment moment() const PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return now_;
  }

  const std::string name_;
  ResourceRecovery<T> recovery_;  // used only by the thread that has set kRecovering
  mutable Mutex mutex_;
  Moment now_ PV2_GUARDED_BY(mutex_);
};

}  // namespace pv2
