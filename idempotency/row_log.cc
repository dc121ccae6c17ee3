// SPDX-License-Identifier: Apache-2.0
//
// Each batch travels in a request of its own, which its answer deletes. A store that gets a batch
// beyond its limits fails for good, so such a batch is refused here.

#include "pv2/idempotency/row_log.h"

#include <pv2/base/latch.h>

#include <string>
#include <utility>

namespace pv2 {
namespace {

struct Request final : CommitRequest {
  std::function<void(Status)> done;
};

void answer(CommitRequest& finished) {
  const std::unique_ptr<Request> request(&static_cast<Request&>(finished));
  request->done(request->status);
}

Status too_large(const RowBatch& batch, const StoreLimits& limits) {
  return Status(StatusCode::kInvalidArgument,
                "a batch of " + std::to_string(batch.operations()) + " operations and " +
                    std::to_string(batch.bytes()) +
                    " bytes is too large, and nothing of it was written; the store takes " +
                    std::to_string(limits.batch_operations) + " and " +
                    std::to_string(limits.batch_bytes));
}

}  // namespace

class StoreRows::Sink final : public CommitSink {
 public:
  void on_committed(CommitList finished) noexcept override {
    while (CommitRequest* const request = finished.pop_front()) answer(*request);
  }
};

Result<std::unique_ptr<StoreRows>> StoreRows::open(std::unique_ptr<ProcedureStore> store) {
  auto sink = std::make_unique<Sink>();
  if (Status status = store->recover_lease(*sink); !status.ok()) return status;
  return std::unique_ptr<StoreRows>(new StoreRows(std::move(store), std::move(sink)));
}

StoreRows::StoreRows(std::unique_ptr<ProcedureStore> store, std::unique_ptr<Sink> sink)
    : sink_(std::move(sink)), store_(std::move(store)), limits_(store_->limits()) {}

StoreRows::~StoreRows() { store_->close(); }

void StoreRows::commit(RowBatch batch, std::function<void(Status)> done) {
  if (!limits_.allow(batch)) return done(too_large(batch, limits_));
  auto request = std::make_unique<Request>();
  request->batch = std::move(batch);
  request->done = std::move(done);
  Request& sent = *request.release();
  if (store_->commit(sent) == CommitAnswer::kDurable) answer(sent);
}

Status StoreRows::commit(RowBatch batch) {
  const auto latch = std::make_shared<Latch<Status>>();
  commit(std::move(batch), [latch](Status status) { latch->set(std::move(status)); });
  while (store_->pump() && !latch->has_value()) {
  }
  latch->wait();
  return *std::move(latch->value);
}

Status StoreRows::scan(std::string_view prefix, const RowVisitor& visit) {
  return store_->scan(Space::kHost, prefix, visit);
}

Result<std::optional<std::string>> StoreRows::get(std::string_view key) {
  return store_->get(Space::kHost, key);
}

ProcedureStore& StoreRows::store() noexcept { return *store_; }

}  // namespace pv2
