// SPDX-License-Identifier: Apache-2.0
//
// ExclusiveResource: modifies a resource elsewhere under a lock, and caches its state. As long as
// nothing fails it keeps the lock, and reads the state once. A failed change may mean that another
// holder got the lock. So after a failure the ExclusiveResource acquires the lock again, reads the
// state again, and refuses a change that was decided by the old state.
//
//     auto seen = resource.look();                     // check outside the lock, at leisure
//     if (!seen.ok() || (*seen)->info.closed) return ...;
//     resource.modify(*seen, [&](const auto& view) -> Result<Account> {
//       Account next = view.info;                      // computed from the present state
//       next.balance += 1;
//       Status status = bank.write(next, view.token);  // refused if there is a newer token
//       return status.ok() ? Result<Account>(next) : status;
//     });

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/base/status.h>

#include <memory>
#include <utility>

#include "pv2/idempotency/resource_adapter.h"
#include "pv2/idempotency/resource_recovery.h"

namespace pv2 {

/// Thread-safe. One thread at a time modifies or recovers; look() waits for neither once the
/// resource is open.
template <class T>
class ExclusiveResource {
 public:
  using View = std::shared_ptr<const ResourceView<T>>;

  explicit ExclusiveResource(std::unique_ptr<ResourceAdapter<T>> adapter,
                             ResourceOptions options = {})
      : recovery_(std::move(adapter), std::move(options)) {}

  /// Acquires and reads the resource, unless that was done before. look() does it too; modify()
  /// needs a view, so it does not.
  Status open() PV2_EXCLUDES(mutex_) { return look().status(); }

  /// What is known of the resource: what the last recovery read, or the last change wrote.
  [[nodiscard]] Result<View> look() PV2_EXCLUDES(mutex_) {
    if (View view = known(); view != nullptr) return view;
    MutexLock lock(mutex_);
    if (View view = known(); view != nullptr) return view;
    if (Status failed = recover(); !failed.ok()) return failed;
    return known();
  }

  /// Calls `change(view)`, which writes to the resource with the view's token and returns what the
  /// resource now contains, or a failure. The view is the newest one, of the same grant as `seen`.
  ///
  /// When `change` fails, this acquires and reads the resource again, and returns the failure with
  /// a text that says whether that worked. What the failure means is up to the host's code: a write
  /// whose answer was lost may have been done, so the caller repeats it under a key that the
  /// resource knows. When `change` throws, or there is no memory for the new view, this acquires
  /// the resource again and throws the same.
  ///
  /// kFenced: the resource was acquired again after `seen` was made; `change` was not called.
  /// kUnavailable: the resource cannot be acquired; `change` was not called.
  template <class Change>
  Status modify(const View& seen, Change&& change) PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (broken_) {
      if (Status failed = recover(); !failed.ok()) return not_called(failed);
    }
    const View now = known();
    if (now == nullptr || seen == nullptr || seen->version != now->version) {
      return stale_view(recovery_.name());
    }
    Result<View> written = call(change, *now);
    if (!written.ok()) {
      const Status recovered = recover();
      return after_recovery(written.status(), recovery_.name(), recovered);
    }
    publish(*std::move(written));
    return Status();
  }

  [[nodiscard]] ResourceState state() const PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return broken_ ? ResourceState::kBroken : ResourceState::kReady;
  }

 private:
  // Returns the view after the change. Whatever throws in here, the change may have been written.
  template <class Change>
  Result<View> call(Change& change, const ResourceView<T>& view) PV2_REQUIRES(mutex_) {
    try {
      Result<T> written = change(view);
      if (!written.ok()) return written.status();
      return std::make_shared<const ResourceView<T>>(
          ResourceView<T>{*std::move(written), view.version, view.token});
    } catch (...) {
      try {
        (void)recover();
      } catch (...) {  // it stays broken; what the change threw matters
      }
      throw;
    }
  }
  Status recover() PV2_REQUIRES(mutex_) {
    broken_ = true;  // also if the adapter throws
    Result<View> view = recovery_.recover(known());
    if (!view.ok()) return view.status();
    publish(*std::move(view));
    broken_ = false;
    return Status();
  }
  [[nodiscard]] View known() const PV2_EXCLUDES(view_mutex_) {
    MutexLock lock(view_mutex_);
    return view_;
  }
  void publish(View view) PV2_EXCLUDES(view_mutex_) {
    MutexLock lock(view_mutex_);
    view_.swap(view);
  }

  mutable Mutex mutex_;  // held while the resource is modified or recovered
  ResourceRecovery<T> recovery_ PV2_GUARDED_BY(mutex_);
  bool broken_ PV2_GUARDED_BY(mutex_) = false;
  mutable Mutex view_mutex_;
  View view_ PV2_GUARDED_BY(view_mutex_);
};

}  // namespace pv2
