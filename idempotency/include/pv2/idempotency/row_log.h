// SPDX-License-Identifier: Apache-2.0
//
// RowLog: where rows become durable, as far as this layer needs to know. StoreRows is the one over
// a store of its own; a host that keeps the rows elsewhere implements it.

#pragma once

#include <pv2/base/status.h>
#include <pv2/store/procedure_store.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace pv2 {

/// Thread-safe.
class RowLog {
 public:
  virtual ~RowLog() = default;
  /// Makes `batch` durable, whole or not at all, then calls `done`, once, on any thread. Does not
  /// block on the disk. A failure is an unknown outcome, and everything after it fails too.
  virtual void commit(RowBatch batch, std::function<void(Status)> done) = 0;
  /// As ProcedureStore::scan(), of Space::kHost.
  virtual Status scan(std::string_view prefix, const RowVisitor& visit) = 0;
};

/// Rows in a store that nobody else uses. Batches that wait share one sync.
class StoreRows final : public RowLog {
 public:
  /// Opens `store` (recover_lease) and owns it. The failure of that, if it fails.
  [[nodiscard]] static Result<std::unique_ptr<StoreRows>> open(
      std::unique_ptr<ProcedureStore> store);
  /// Closes the store; what was committed is drained first.
  ~StoreRows() override;

  void commit(RowBatch batch, std::function<void(Status)> done) override;
  Status scan(std::string_view prefix, const RowVisitor& visit) override;
  /// commit(), waiting for the answer. Not in a `done`.
  Status commit(RowBatch batch);
  [[nodiscard]] Result<std::optional<std::string>> get(std::string_view key);
  [[nodiscard]] ProcedureStore& store() noexcept;

 private:
  class Sink;
  StoreRows(std::unique_ptr<ProcedureStore> store, std::unique_ptr<Sink> sink);
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<ProcedureStore> store_;
};

}  // namespace pv2
