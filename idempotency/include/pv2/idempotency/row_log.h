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
  /// Makes `batch` durable, whole or not at all, then calls `done`, once, on any thread, or in this
  /// call. `done` does not throw. Does not block on the disk.
  ///
  /// kInvalidArgument: the batch is larger than this log takes. The log wrote nothing of it and
  /// takes the next one; the caller ends the request with RequestOwner::refuse(), or the operation
  /// with NonceOwner::fail(). Any other failure is an unknown outcome, and every later commit
  /// fails.
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
  /// Closes the store, which first writes what was committed.
  ~StoreRows() override;

  void commit(RowBatch batch, std::function<void(Status)> done) override;
  Status scan(std::string_view prefix, const RowVisitor& visit) override;
  /// Like commit() above, and waits for the answer. Not to be called in a `done`.
  Status commit(RowBatch batch);
  [[nodiscard]] Result<std::optional<std::string>> get(std::string_view key);
  [[nodiscard]] ProcedureStore& store() noexcept;

 private:
  class Sink;
  StoreRows(std::unique_ptr<ProcedureStore> store, std::unique_ptr<Sink> sink);
  std::unique_ptr<Sink> sink_;
  std::unique_ptr<ProcedureStore> store_;
  const StoreLimits limits_;
};

}  // namespace pv2
