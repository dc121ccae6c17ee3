// SPDX-License-Identifier: Apache-2.0
//
// FaultStore. pass() decides what becomes of a request; on_committed() handles the answers.

#include "pv2/testing/fault_store.h"

#include <algorithm>

namespace pv2::testing {

struct FaultStore::Stand final : CommitRequest {
  Stand(CommitRequest& request, Status why) : stands_for(request), failure(std::move(why)) {}
  CommitRequest& stands_for;
  const Status failure;
};

FaultStore::FaultStore(std::unique_ptr<ProcedureStore> inner) : inner_(std::move(inner)) {}
FaultStore::~FaultStore() = default;

void FaultStore::fail_commit(std::size_t n, Status failure) {
  MutexLock lock(faults_mutex_);
  fail_from_ = n;
  failure_ = std::move(failure);
}

void FaultStore::hold_commit(std::size_t n) {
  MutexLock lock(faults_mutex_);
  hold_from_ = n;
}

void FaultStore::release() {
  CommitList answered;
  {
    MutexLock lock(faults_mutex_);
    hold_from_ = SIZE_MAX;
    while (CommitRequest* const request = held_.pop_front()) {
      if (pass(*request, Wake::kYes) == CommitAnswer::kDurable) answered.push_back(*request);
    }
  }
  // The inner store has answered at once, but the caller was told "queued" when the request was
  // held, so the answer goes to the sink.
  if (!answered.empty()) sink_->on_committed(std::move(answered));
}

void FaultStore::crash_before(std::size_t n, AfterCrash then) {
  MutexLock lock(faults_mutex_);
  crash_from_ = n;
  after_crash_ = then;
}

void FaultStore::crash_after(std::size_t n, AfterCrash then) {
  MutexLock lock(faults_mutex_);
  silent_ = n;
  crash_from_ = n + 1;
  after_crash_ = then;
}

void FaultStore::observe(Observer observer) {
  MutexLock lock(faults_mutex_);
  observer_ = std::move(observer);
}

bool FaultStore::crashed() const {
  MutexLock lock(faults_mutex_);
  return crashed_;
}

std::size_t FaultStore::commits() const {
  MutexLock lock(faults_mutex_);
  return commits_;
}

std::size_t FaultStore::held() const {
  MutexLock lock(faults_mutex_);
  return held_.size();
}

std::size_t FaultStore::rows(Space space, RowOperation operation) const {
  MutexLock lock(faults_mutex_);
  return static_cast<std::size_t>(std::count_if(
      trace_.begin(), trace_.end(),
      [&](const Passed& row) { return row.space == space && row.operation == operation; }));
}

std::vector<FaultStore::Passed> FaultStore::trace() const {
  MutexLock lock(faults_mutex_);
  return trace_;
}

Status FaultStore::recover_lease(CommitSink& sink) {
  sink_ = &sink;
  return inner_->recover_lease(*this);
}

void FaultStore::close() noexcept {
  inner_->close();
  CommitList dropped;
  {
    MutexLock lock(faults_mutex_);
    closed_ = true;
    dropped = std::move(dropped_);
    while (CommitRequest* const request = held_.pop_front()) {
      request->status =
          Status(StatusCode::kIoError, "the store was closed while the commit waited");
      dropped.push_back(*request);
    }
  }
  if (!dropped.empty()) sink_->on_committed(std::move(dropped));
}

CommitAnswer FaultStore::refuse_closed(CommitRequest& request) {
  request.status = Status(StatusCode::kStopping, "the store is closed");
  return CommitAnswer::kDurable;
}

void FaultStore::drop(CommitRequest& request) {
  request.status = Status(StatusCode::kIoError, "the store has crashed");
  dropped_.push_back(request);
}

CommitAnswer FaultStore::commit(CommitRequest& request) {
  MutexLock lock(faults_mutex_);
  if (closed_) return refuse_closed(request);
  if (!held_.empty() || commits_ + 1 >= hold_from_) {
    held_.push_back(request);
    return CommitAnswer::kQueued;
  }
  return pass(request, Wake::kYes);
}

CommitAnswer FaultStore::commit_all(CommitList& requests) {
  return commit_list(requests, Wake::kYes);
}
CommitAnswer FaultStore::queue_all(CommitList& requests) {
  return commit_list(requests, Wake::kNo);
}

CommitAnswer FaultStore::commit_list(CommitList& requests, Wake wake) {
  MutexLock lock(faults_mutex_);
  if (closed_) {
    requests.for_each([](CommitRequest& request) { refuse_closed(request); });
    return CommitAnswer::kDurable;
  }
  if (!held_.empty() || commits_ + requests.size() >= hold_from_) {
    CommitList earlier;  // those of the list that need not wait
    for (std::size_t n = commits_ + 1; held_.empty() && n < hold_from_; ++n) {
      earlier.push_back(*requests.pop_front());
    }
    held_.splice_back(std::move(requests));
    if (earlier.empty()) return CommitAnswer::kQueued;
    requests = std::move(earlier);
  }
  const std::size_t last = commits_ + requests.size();
  if (last < std::min({fail_from_, crash_from_, silent_})) {
    requests.for_each([this](CommitRequest& request) PV2_NO_THREAD_SAFETY_ANALYSIS {
      number(request);
      note(request);
    });
    return wake == Wake::kYes ? inner_->commit_all(requests) : inner_->queue_all(requests);
  }

  CommitList durable;
  while (CommitRequest* const request = requests.pop_front()) {
    if (pass(*request, wake) == CommitAnswer::kDurable) durable.push_back(*request);
  }
  if (durable.empty()) return CommitAnswer::kQueued;
  requests = std::move(durable);
  return CommitAnswer::kDurable;
}

CommitAnswer FaultStore::pass(CommitRequest& request, Wake wake) {
  const std::size_t n = number(request);
  if (n >= crash_from_) {
    crashed_ = true;
    if (after_crash_ == AfterCrash::kDrop) {
      drop(request);
      return CommitAnswer::kQueued;
    }
    return pass_failing(request, Status(StatusCode::kIoError, "the store has crashed"), wake);
  }
  if (n >= fail_from_) return pass_failing(request, failure_, wake);
  note(request);
  if (n == silent_) {
    silenced_ = &request;
    // For a request answered at once there is no later answer that could be dropped.
    if (send(request, wake) == CommitAnswer::kQueued) return CommitAnswer::kQueued;
    crashed_ = true;
    if (after_crash_ == AfterCrash::kFail) {
      request.status = Status(StatusCode::kIoError, "the store has crashed");
      return CommitAnswer::kDurable;
    }
    drop(request);
    return CommitAnswer::kQueued;
  }
  return send(request, wake);
}

CommitAnswer FaultStore::pass_failing(CommitRequest& request, const Status& failure, Wake wake) {
  auto stand = std::make_unique<Stand>(request, failure);
  CommitRequest& in_place = *stand;
  stands_.emplace(&in_place, std::move(stand));
  const CommitAnswer answer = send(in_place, wake);
  if (answer == CommitAnswer::kDurable) {
    request.status = failure;
    stands_.erase(&in_place);
  }
  return answer;
}

CommitAnswer FaultStore::send(CommitRequest& request, Wake wake) {
  if (wake == Wake::kYes) return inner_->commit(request);
  CommitList one;
  one.push_back(request);
  return inner_->queue_all(one);
}

std::size_t FaultStore::number(const CommitRequest& request) {
  ++commits_;
  if (observer_) observer_(commits_, request.batch);
  return commits_;
}

// The analysis does not look into a lambda; the caller holds the mutex.
void FaultStore::note(const CommitRequest& request) PV2_NO_THREAD_SAFETY_ANALYSIS {
  request.batch.for_each([this](RowOperation operation, Space space, std::string_view key,
                                std::string_view value) PV2_NO_THREAD_SAFETY_ANALYSIS {
    trace_.push_back({commits_, operation, space, std::string(key), value.size()});
  });
}

void FaultStore::on_committed(CommitList finished) noexcept {
  CommitList heard;
  {
    MutexLock lock(faults_mutex_);
    while (CommitRequest* const request = finished.pop_front()) {
      if (request == silenced_ && request->status.ok()) {
        crashed_ = true;
        if (after_crash_ == AfterCrash::kDrop) {
          drop(*request);
          continue;
        }
        request->status = Status(StatusCode::kIoError, "the store has crashed");
      }
      const auto stand = stands_.find(request);
      if (stand == stands_.end()) {
        heard.push_back(*request);
        continue;
      }
      CommitRequest& original = stand->second->stands_for;
      original.sequence = request->sequence;
      original.status = request->status.ok() ? stand->second->failure : request->status;
      heard.push_back(original);
      stands_.erase(stand);
    }
  }
  if (!heard.empty()) sink_->on_committed(std::move(heard));
}

}  // namespace pv2::testing
