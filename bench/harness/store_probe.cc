// SPDX-License-Identifier: Apache-2.0
//
// A store returns requests in the order in which they were stamped, so the times of their hand-over
// form a queue.

#include "harness/store_probe.h"

#include <algorithm>
#include <utility>

namespace pv2::bench {
namespace {

// What RowBatch adds to the key and the value of an operation.
constexpr std::size_t kFramingBytes = 10;

// The bytes of the keys and the values alone.
double record_bytes(const CommitRequest& request) {
  return static_cast<double>(request.batch.bytes() - kFramingBytes * request.batch.operations());
}

void append(RecordedStream& recording, const CommitList& finished) {
  finished.for_each([&recording](const CommitRequest& request) {
    recording.requests.push_back(request.batch);
    request.batch.for_each(
        [&](RowOperation operation, Space space, std::string_view, std::string_view) {
          if (is_step(operation, space)) ++recording.steps;
        });
  });
  recording.requests_per_sync.push_back(finished.size());
}

}  // namespace

Status StoreProbe::recover_lease(CommitSink& sink) {
  sink_ = &sink;
  return store_->recover_lease(*this);
}

CommitAnswer StoreProbe::commit(CommitRequest& request) {
  MutexLock lock(order_mutex_);
  traffic_.record_bytes += record_bytes(request);
  order_.push_back({1, BenchClock::now()});
  const CommitAnswer answer = store_->commit(request);
  if (answer == CommitAnswer::kDurable) order_.pop_back();
  return answer;
}

CommitAnswer StoreProbe::hand_on(CommitList& requests, Verb verb) {
  MutexLock lock(order_mutex_);
  double bytes = 0;
  requests.for_each([&bytes](const CommitRequest& request) { bytes += record_bytes(request); });
  traffic_.record_bytes += bytes;
  order_.push_back({requests.size(), BenchClock::now()});
  const CommitAnswer answer = (*store_.*verb)(requests);
  if (answer == CommitAnswer::kDurable) order_.pop_back();
  return answer;
}

void StoreProbe::on_committed(CommitList finished) noexcept {
  take_times(finished.size());
  copy(finished);
  sink_->on_committed(std::move(finished));
}

void StoreProbe::on_committed_more_follows(CommitList finished) noexcept {
  take_times(finished.size());
  copy(finished);
  sink_->on_committed_more_follows(std::move(finished));
}

void StoreProbe::take_times(std::size_t requests) {
  const auto now = BenchClock::now();
  MutexLock lock(order_mutex_);
  if (counting_) {
    ++traffic_.syncs;
    traffic_.requests += requests;
  }
  while (requests != 0) {
    Batch& batch = order_.front();
    const std::size_t part = std::min(requests, batch.requests);
    if (counting_) {
      traffic_.latencies.add(std::chrono::duration<double, std::micro>(now - batch.at).count(),
                             static_cast<std::uint32_t>(part));
    }
    requests -= part;
    batch.requests -= part;
    if (batch.requests == 0) order_.pop_front();
  }
}

void StoreProbe::copy(const CommitList& finished) {
  MutexLock lock(recording_mutex_);
  if (record_left_ == 0) return;
  append(recording_, finished);
  record_left_ -= std::min(record_left_, finished.size());
}

void StoreProbe::begin_window() {
  MutexLock lock(order_mutex_);
  traffic_ = {};
  counting_ = true;
}

StoreTraffic StoreProbe::end_window() {
  MutexLock lock(order_mutex_);
  counting_ = false;
  return std::move(traffic_);
}

void StoreProbe::record(std::size_t requests) {
  MutexLock lock(recording_mutex_);
  recording_ = {};
  record_left_ = requests;
}

bool StoreProbe::recorded() const {
  MutexLock lock(recording_mutex_);
  return record_left_ == 0;
}

RecordedStream StoreProbe::take_recording() {
  MutexLock lock(recording_mutex_);
  record_left_ = 0;
  return std::move(recording_);
}

bool StoreProbe::idle() const {
  MutexLock lock(order_mutex_);
  return order_.empty();
}

}  // namespace pv2::bench
