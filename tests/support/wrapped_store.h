// SPDX-License-Identifier: Apache-2.0
//
// WrappedStore: a store that forwards every call to the store in it. A test derives from it and
// changes one verb. Faults that FaultStore can inject are left to that.

#pragma once

#include <pv2/store/procedure_store.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pv2::testing {

/// As thread-safe as the inner store.
class WrappedStore : public ProcedureStore {
 public:
  explicit WrappedStore(std::unique_ptr<ProcedureStore> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] std::string name() const override { return inner_->name(); }
  Status recover_lease(CommitSink& sink) override { return inner_->recover_lease(sink); }
  CommitAnswer commit(CommitRequest& request) override { return inner_->commit(request); }
  CommitAnswer commit_all(CommitList& requests) override { return inner_->commit_all(requests); }
  CommitAnswer queue_all(CommitList& requests) override { return inner_->queue_all(requests); }
  Written write_queued() override { return inner_->write_queued(); }
  void wake_writer() override { inner_->wake_writer(); }
  Result<std::optional<std::string>> get(Space space, std::string_view key) override {
    return inner_->get(space, key);
  }
  Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override {
    return inner_->scan(space, prefix, visit);
  }
  [[nodiscard]] bool keeps_records() const noexcept override { return inner_->keeps_records(); }
  [[nodiscard]] StoreLimits limits() const noexcept override { return inner_->limits(); }
  bool pump() override { return inner_->pump(); }
  void close() noexcept override { inner_->close(); }

 protected:
  [[nodiscard]] ProcedureStore& inner() const noexcept { return *inner_; }

 private:
  std::unique_ptr<ProcedureStore> inner_;
};

}  // namespace pv2::testing
