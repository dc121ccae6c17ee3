// SPDX-License-Identifier: Apache-2.0
//
// NoopProcedureStore: for hosts that want the engine without durability. A commit completes at
// once; procedures, nonces and the engine's own rows are dropped. Only rows of the host are kept,
// in memory, because steps read them back. Nothing survives the object. It cannot fail.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pv2/store/procedure_store.h"

namespace pv2 {

/// Keeps no records. Thread-safe as ProcedureStore states; a commit without rows of the host takes
/// no lock.
class NoopProcedureStore final : public ProcedureStore {
 public:
  NoopProcedureStore();
  ~NoopProcedureStore() override;

  [[nodiscard]] std::string name() const override { return "noop store"; }
  Status recover_lease(CommitSink& sink) override;
  CommitAnswer commit(CommitRequest& request) override;
  CommitAnswer commit_all(CommitList& requests) override;
  Result<std::optional<std::string>> get(Space space, std::string_view key) override;
  Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override;
  [[nodiscard]] bool keeps_records() const noexcept override { return false; }
  [[nodiscard]] StoreLimits limits() const noexcept override;
  void close() noexcept override;

 private:
  struct HostRows;
  void apply(CommitRequest& request);

  // Relaxed: a thread that commits learnt of the store after it was opened.
  std::atomic<bool> open_ = false;
  std::atomic<std::uint64_t> last_sequence_ = 0;  // relaxed: only its own order matters
  std::unique_ptr<HostRows> host_rows_;
};

/// A store that keeps nothing: see NoopProcedureStore.
[[nodiscard]] std::unique_ptr<ProcedureStore> noop();

}  // namespace pv2
