// SPDX-License-Identifier: Apache-2.0
//
// A resource elsewhere and its lock service, in memory, for tests: a number that is written under a
// lock whose grants have epochs. A session that expires loses the lock. A test can have acquiring
// fail, and decide whether the resource compares tokens.

#pragma once

#include <pv2/base/mutex.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "pv2/idempotency/resource_adapter.h"

namespace pv2::testing {

/// Thread-safe.
class LockService {
 public:
  explicit LockService(bool compares_tokens = true) : compares_tokens_(compares_tokens) {}

  /// Grants the lock to `holder`, whoever has it now: what an expired session amounts to.
  Result<FencingToken> acquire(const std::string& holder) PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++acquires_;
    if (refusals_ > 0) {
      --refusals_;
      return Status(StatusCode::kIoError, "the lock service does not answer");
    }
    holder_ = holder;
    return FencingToken{++epoch_};
  }
  Result<int> read() PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++reads_;
    return value_;
  }
  /// What a resource does with a write that carries `token`.
  Status write(int value, FencingToken token) PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (compares_tokens_ && token.epoch < epoch_) {
      return Status(StatusCode::kFenced, "the write has epoch " + std::to_string(token.epoch) +
                                             ", and the lock was granted again with epoch " +
                                             std::to_string(epoch_));
    }
    ++writes_;
    value_ = value;
    return Status();
  }

  void refuse_next_acquires(int count) PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    refusals_ = count;
  }
  void forget_grants() PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    epoch_ = 0;
  }
  [[nodiscard]] int value() const PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return value_;
  }
  [[nodiscard]] int acquires() const PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return acquires_;
  }
  [[nodiscard]] int reads() const PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return reads_;
  }
  [[nodiscard]] int writes() const PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return writes_;
  }
  [[nodiscard]] std::string holder() const PV2_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return holder_;
  }

 private:
  const bool compares_tokens_;
  mutable Mutex mutex_;
  std::string holder_ PV2_GUARDED_BY(mutex_);
  std::uint64_t epoch_ PV2_GUARDED_BY(mutex_) = 0;
  int value_ PV2_GUARDED_BY(mutex_) = 1;
  int acquires_ PV2_GUARDED_BY(mutex_) = 0;
  int reads_ PV2_GUARDED_BY(mutex_) = 0;
  int writes_ PV2_GUARDED_BY(mutex_) = 0;
  int refusals_ PV2_GUARDED_BY(mutex_) = 0;
};

/// The number, as one client of the lock service sees it.
class NumberAdapter final : public ResourceAdapter<int> {
 public:
  NumberAdapter(std::shared_ptr<LockService> service, std::string holder, Fencing fencing = {})
      : service_(std::move(service)), holder_(std::move(holder)), fencing_(fencing) {}

  [[nodiscard]] std::string name() const override { return "number X"; }
  [[nodiscard]] Fencing fencing() const override { return fencing_; }
  Result<FencingToken> acquire() override { return service_->acquire(holder_); }
  Result<int> read(FencingToken /*token*/) override { return service_->read(); }

 private:
  std::shared_ptr<LockService> service_;
  std::string holder_;
  Fencing fencing_;
};

}  // namespace pv2::testing
