// SPDX-License-Identifier: Apache-2.0
//
// MemoryProcedureStore: a store for tests and simulations, with a "disk" that outlives it. A test
// crashes the store by dropping it (what was queued is lost, what was durable stays on the
// MemoryDisk) and opens another on the same disk. It also checks the engine: an insert of a row
// that exists, or an update of one that does not, fails the commit with kInternal and names the
// row. Nothing survives the process.

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pv2/store/procedure_store.h"

namespace pv2 {

/// The durable image of a MemoryProcedureStore. Thread-safe.
class MemoryDisk {
 public:
  MemoryDisk();
  ~MemoryDisk();
  MemoryDisk(const MemoryDisk&) = delete;
  MemoryDisk& operator=(const MemoryDisk&) = delete;

  /// A second disk with the same contents; later changes to one do not show on the other.
  [[nodiscard]] std::shared_ptr<MemoryDisk> clone() const;

  [[nodiscard]] std::size_t rows() const;
  /// The rows of one space whose keys begin with `prefix`.
  [[nodiscard]] std::size_t rows(Space space, std::string_view prefix = {}) const;
  [[nodiscard]] std::optional<std::string> get(Space space, std::string_view key) const;
  /// Changes a row behind the back of any store: how a test damages a record.
  void put(Space space, std::string_view key, std::string_view value);
  bool erase(Space space, std::string_view key);

 private:
  friend class MemoryProcedureStore;
  struct Image;
  std::unique_ptr<Image> image_;
};

/// How a MemoryProcedureStore commits.
struct MemoryStoreOptions {
  enum class Mode {
    kPump,    ///< commit() queues; pump() makes it durable on the calling thread.
    kThread,  ///< A thread of the store makes it durable, like a store on a disk.
  };
  Mode mode = Mode::kPump;
  StoreLimits limits{.batch_operations = 65'536, .batch_bytes = std::size_t{16} << 20};
};

/// Keeps rows in memory. Thread-safe as ProcedureStore states; pump() is called by one thread at a
/// time. The second store that takes the lease of a disk fences the first, whose later commits fail
/// with kFenced. Destroying it without close() is the crash: the sink is not called for what was
/// still queued.
class MemoryProcedureStore final : public ProcedureStore {
 public:
  explicit MemoryProcedureStore(std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>(),
                                MemoryStoreOptions options = {});
  ~MemoryProcedureStore() override;

  [[nodiscard]] std::string name() const override { return "memory store"; }
  Status recover_lease(CommitSink& sink) override;
  CommitAnswer commit(CommitRequest& request) override;
  CommitAnswer commit_all(CommitList& requests) override;
  CommitAnswer queue_all(CommitList& requests) override;
  Written write_queued() override;
  void wake_writer() override;
  Result<std::optional<std::string>> get(Space space, std::string_view key) override;
  Status scan(Space space, std::string_view prefix, const RowVisitor& visit) override;
  [[nodiscard]] bool keeps_records() const noexcept override { return true; }
  [[nodiscard]] StoreLimits limits() const noexcept override;
  /// Makes everything that is queued durable as one batch; the sink gets it in one list.
  bool pump() override;
  /// Like pump(), for the first `requests_max` requests only.
  bool pump_some(std::size_t requests_max);
  void close() noexcept override;

  /// How many requests wait for pump().
  [[nodiscard]] std::size_t queued() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A MemoryProcedureStore on `disk`.
[[nodiscard]] std::unique_ptr<ProcedureStore> memory(
    std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>(),
    MemoryStoreOptions options = {});

}  // namespace pv2
