// SPDX-License-Identifier: Apache-2.0
//
// LevelDbRows: the database of a store. It holds the rows of all checkpoints, and two of its own:
// the last commit of the newest checkpoint, and the segment with which the step log goes on. It is
// opened without changing a byte (deferred_env.h), and changed by the first checkpoint of a
// process.

#pragma once

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/iterator.h>
#include <leveldb/write_batch.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "background_env.h"
#include "deferred_env.h"
#include "durable_names_env.h"
#include "leveldb_directory.h"
#include "log/checkpointer.h"
#include "pv2/base/status.h"
#include "pv2/store/procedure_store.h"
#include "steady_writes_env.h"

namespace pv2 {

/// Reads are thread-safe, between open() and close(); one thread at a time does everything else. An
/// exception inside a call of LevelDB, as without memory, would leave its mutex and its lock file
/// locked, or unlock the mutex twice: so calls of it that take its mutex are noexcept, and end the
/// process.
class LevelDbRows final : public CheckpointWriter {
 public:
  struct Options {
    std::size_t write_buffer_bytes = 0;
    std::size_t block_cache_bytes = 0;
    SteadyWritesEnv::WriteOut write_out = &SteadyWritesEnv::write_out_by_system;
  };
  LevelDbRows(const LevelDbDirectory& directory, Options options);
  ~LevelDbRows();
  LevelDbRows(const LevelDbRows&) = delete;
  LevelDbRows& operator=(const LevelDbRows&) = delete;

  /// A new database, or the one that is there, whose files stay as they are until take_over(). Some
  /// may be shown to it without their ends.
  Status create() { return open(true, {}); }
  Status open(std::vector<ShownFile> shown) { return open(false, std::move(shown)); }
  /// Makes the changes that LevelDB wanted to make when it was opened.
  Status take_over();
  [[nodiscard]] bool is_taken_over() const noexcept { return !env_.defers(); }
  /// Changes that were not made are dropped. Idempotent.
  void close() noexcept;

  /// The last commit that is in the database, as it was opened.
  [[nodiscard]] CommitSequence last() const noexcept { return last_; }
  /// The commit up to which the log has to reach for the database to be whole, as it was opened.
  [[nodiscard]] CommitSequence needs() const noexcept { return needs_; }
  /// The first segment that is not in the database, as it was opened.
  [[nodiscard]] SegmentNumber next_segment() const noexcept { return next_segment_; }
  /// Says whether LevelDB may stop one of the next `writes` writes until a compaction has ended. It
  /// never stops the first write after open(). True also if LevelDB does not tell.
  [[nodiscard]] bool may_stop_within(std::size_t writes) const noexcept;

  Result<std::optional<std::string>> get(std::string_view full_key) const noexcept;
  /// All rows as of now.
  [[nodiscard]] std::unique_ptr<leveldb::Iterator> rows() const noexcept;
  /// Calls `visit` with the row at `rows`, unless it is too short to be one.
  Status visit(const leveldb::Iterator& rows, const RowVisitor& visit) const;
  /// What a failure to read means; if a file is damaged, which one. `act`: "reading".
  [[nodiscard]] Status explain(const leveldb::Status& failure, std::string_view act) const;

  Status write_checkpoint(const Overlay::Checkpoint& checkpoint,
                          SegmentNumber next) noexcept override;

 private:
  // NOLINTNEXTLINE(bugprone-exception-escape): as above
  Status open(bool create, std::vector<ShownFile> shown) noexcept;
  [[nodiscard]] bool is_held_by_another(const Status& opened) const;
  Status read_own_rows();
  Status too_short(std::string_view key) const;

  const LevelDbDirectory& directory_;
  const Options options_;
  // LevelDB's Env, which outlives the database: the last one, which wraps those before it.
  BackgroundEnv background_;
  SteadyWritesEnv steady_writes_;
  DurableNamesEnv durable_names_;
  DeferredEnv env_;
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<leveldb::DB> db_;
  CommitSequence last_;
  CommitSequence needs_;
  SegmentNumber next_segment_{1};

  // A checkpoint uses the memory of the one before. It always has a value.
  std::optional<leveldb::WriteBatch> batch_{std::in_place};
  std::string value_;
};

}  // namespace pv2
