// SPDX-License-Identifier: Apache-2.0
//
// StoreProbe: a store around a store. It counts requests and measures how long they take, and can
// keep a copy of them. The time of a request is from commit() to the call of the sink: what
// "durable" costs a caller that has to wait for it. It costs the engine a mutex and two readings of
// the clock per batch of requests, about 20 ns per step, and touches a request only when it is
// handed over and its memory is warm. Copying costs more; no time is measured meanwhile.

#pragma once

#include <pv2/base/mutex.h>
#include <pv2/store/procedure_store.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "harness/machine.h"
#include "harness/samples.h"

namespace pv2::bench {

/// What was committed, in order, and how many requests had one sync. A value.
struct RecordedStream {
  std::vector<RowBatch> requests;
  std::vector<std::size_t> requests_per_sync;
  /// How many records of steps are among the requests.
  std::uint64_t steps = 0;
};

/// Whether this operation is the record of a step: the update of a procedure's row, or the result
/// of its last step.
[[nodiscard]] constexpr bool is_step(RowOperation operation, Space space) noexcept {
  return (operation == RowOperation::kUpdate && space == Space::kProcedure) ||
         (operation != RowOperation::kDelete && space == Space::kResult);
}

/// What was committed in a window. A value.
struct StoreTraffic {
  std::uint64_t requests = 0;
  std::uint64_t syncs = 0;
  double record_bytes = 0;  ///< Keys and values of the requests, without any framing.
  Samples latencies;        ///< One per batch, weighted with its requests.
};

/// Thread-safe as ProcedureStore states; the window and the recording belong to one other thread.
class StoreProbe final : public ProcedureStore, private CommitSink {
 public:
  explicit StoreProbe(std::unique_ptr<ProcedureStore> store) : store_(std::move(store)) {}

  void begin_window() PV2_EXCLUDES(order_mutex_);
  [[nodiscard]] StoreTraffic end_window() PV2_EXCLUDES(order_mutex_);
  /// Copies the next `requests` requests that become durable, up to a sync.
  void record(std::size_t requests) PV2_EXCLUDES(recording_mutex_);
  [[nodiscard]] bool recorded() const PV2_EXCLUDES(recording_mutex_);
  [[nodiscard]] RecordedStream take_recording() PV2_EXCLUDES(recording_mutex_);
  /// Whether every request that was committed has come back.
  [[nodiscard]] bool idle() const PV2_EXCLUDES(order_mutex_);

  [[nodiscard]] std::string name() const override { return store_->name(); }
  Status recover_lease(CommitSink& sink) override;
  CommitAnswer commit(CommitRequest& request) override PV2_EXCLUDES(order_mutex_);
  CommitAnswer commit_all(CommitList& requests) override {
    return hand_on(requests, &ProcedureStore::commit_all);
  }
  CommitAnswer queue_all(CommitList& requests) override {
    return hand_on(requests, &ProcedureStore::queue_all);
  }
  Written write_queued() override { return store_->write_queued(); }
  void wake_writer() override { store_->wake_writer(); }
  Result<std::optional<std::string>> get(Space space, std::string_view key) override {
    return store_->get(space, key);
  }
  Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override {
    return store_->scan(space, prefix, visit);
  }
  [[nodiscard]] bool keeps_records() const noexcept override { return store_->keeps_records(); }
  [[nodiscard]] StoreLimits limits() const noexcept override { return store_->limits(); }
  bool pump() override { return store_->pump(); }
  void close() noexcept override { store_->close(); }

 private:
  // Requests that were handed over together.
  struct Batch {
    std::size_t requests = 0;
    BenchClock::time_point at;
  };

  using Verb = CommitAnswer (ProcedureStore::*)(CommitList&);
  CommitAnswer hand_on(CommitList& requests, Verb verb) PV2_EXCLUDES(order_mutex_);
  void on_committed(CommitList finished) noexcept override;
  void on_committed_more_follows(CommitList finished) noexcept override;
  void take_times(std::size_t requests) PV2_EXCLUDES(order_mutex_);
  void copy(const CommitList& finished) PV2_EXCLUDES(recording_mutex_);

  std::unique_ptr<ProcedureStore> store_;
  CommitSink* sink_ = nullptr;

  // Held while a request is handed on: the store returns requests in the order of order_.
  mutable Mutex order_mutex_;
  std::deque<Batch> order_ PV2_GUARDED_BY(order_mutex_);
  bool counting_ PV2_GUARDED_BY(order_mutex_) = false;
  StoreTraffic traffic_ PV2_GUARDED_BY(order_mutex_);

  mutable Mutex recording_mutex_;
  std::size_t record_left_ PV2_GUARDED_BY(recording_mutex_) = 0;
  RecordedStream recording_ PV2_GUARDED_BY(recording_mutex_);
};

}  // namespace pv2::bench
