// SPDX-License-Identifier: Apache-2.0
//
// SimulatedStore: a memory store whose commits become durable when a simulation says so. It fails
// where the simulation says so, and can be cut off in the middle: then every request comes back to
// the engine as a failure, whether it was written or not, so that the engine lets go of all of
// them. Only rows that were durable are on the disk afterwards.

#pragma once

#include <pv2/store/memory_procedure_store.h>

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace pv2::testing {

/// Owned by one thread.
class SimulatedStore final : public ProcedureStore, private CommitSink {
 public:
  explicit SimulatedStore(std::shared_ptr<MemoryDisk> disk, StoreLimits limits)
      : disk_(std::move(disk)), inner_(disk_, {.limits = limits}) {}

  /// How many requests one pump() of the engine makes durable: from 0, none, to SIZE_MAX, all.
  void set_budget(std::size_t requests) noexcept { budget_ = requests; }
  /// Makes the first `requests` queued requests durable.
  bool commit_some(std::size_t requests) { return !cut_ && inner_.pump_some(requests); }
  /// The next `requests` are written and succeed. All later ones fail, but the first `unheard` of
  /// those are written all the same.
  void fail_after(std::size_t requests, std::size_t unheard);
  /// The machine dies: the first `unheard` queued requests are written, though the engine hears of
  /// a failure; nothing after them is written.
  void cut(std::size_t unheard);
  /// Procedures whose records were written without the engine hearing of it.
  [[nodiscard]] const std::set<std::uint64_t>& unheard() const noexcept { return unheard_ids_; }
  [[nodiscard]] std::size_t queued() const { return inner_.queued(); }

  // ProcedureStore
  [[nodiscard]] std::string name() const override { return inner_.name(); }
  Status recover_lease(CommitSink& sink) override {
    sink_ = &sink;
    return inner_.recover_lease(*this);
  }
  CommitAnswer commit(CommitRequest& request) override { return inner_.commit(request); }
  CommitAnswer commit_all(CommitList& requests) override { return inner_.commit_all(requests); }
  Result<std::optional<std::string>> get(Space space, std::string_view key) override {
    return inner_.get(space, key);
  }
  Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override {
    return inner_.scan(space, prefix, visit);
  }
  [[nodiscard]] bool keeps_records() const noexcept override { return true; }
  [[nodiscard]] StoreLimits limits() const noexcept override { return inner_.limits(); }
  bool pump() override;
  void close() noexcept override { inner_.close(); }

 private:
  void on_committed(CommitList finished) noexcept override;
  void fence();

  const std::shared_ptr<MemoryDisk> disk_;
  CommitSink* sink_ = nullptr;
  std::size_t budget_ = SIZE_MAX;
  std::size_t good_ = SIZE_MAX;  // this many requests still succeed
  std::size_t unheard_ = 0;      // then this many are written though they fail
  bool cut_ = false;
  bool nobody_hears_ = false;  // requests written now come back as failures
  std::set<std::uint64_t> unheard_ids_;
  MemoryProcedureStore inner_;  // last: its destructor uses nothing above, but its sink does
};

}  // namespace pv2::testing
