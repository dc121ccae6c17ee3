// SPDX-License-Identifier: Apache-2.0
//
// LevelDbProcedureStore: rows in a log and a LevelDB database in one directory, the store of a
// single process that must survive crashes. One thread writes, with group commit: everything that
// is queued while it syncs goes into the next write. A commit goes into the log; another thread
// moves the rows that are still there a while later into LevelDB, whose compactions have a third
// one. The bytes are described in docs/store-format.md.
//
// How it fails: a directory that is not a store, is in use, is damaged or too new is refused before
// anything in it has changed: recover_lease(), get() and scan() write nothing into a store that
// exists, the first commit does. The first write that fails is the last of this run. Damage is
// never skipped, and is reported with the name of its file, or, when the store has been written
// since it was opened, of the row. If the directory is removed, moved or replaced, the next write
// fails. A write for which the system gives no memory ends the process, and so does a read, except
// for the visits of a scan: LevelDB, and the index of the log, would not be whole afterwards.

#pragma once

#include <any>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pv2/store/procedure_store.h"

namespace pv2 {

class SegmentFiles;

struct LevelDbOptions {
  /// Whether a path with nothing, or a store that was never finished, becomes a new store; if not,
  /// kNotFound.
  bool create_if_missing = true;
  /// How much LevelDB keeps in memory before it writes a table. A restart replays as much, or the
  /// last checkpoint if that is larger. 4 MiB is LevelDB's default.
  std::size_t write_buffer_bytes = std::size_t{4} << 20;
  std::size_t block_cache_bytes = std::size_t{8} << 20;

  /// Each commit is written and synced into a file of the step log, whose rows go to LevelDB when
  /// it is full. The first files are smaller, 64 KiB, 256 KiB and so on, up to this size. 1 byte to
  /// 1 GiB; recover_lease() refuses others. A unit that is larger makes its file grow.
  std::size_t segment_bytes = std::size_t{16} << 20;
  /// How many such files there may be, at least 2. What the used ones hold is in memory too, and
  /// the memory of one more is kept for the next one. If all are full, commits wait until one has
  /// been moved into LevelDB.
  std::size_t segments = 4;

  /// What one request may hold. 65 536 rows take the writer about 50 ms, during which all other
  /// requests wait.
  StoreLimits limits{.batch_operations = 65'536, .batch_bytes = std::size_t{16} << 20};
  /// What one sync may hold; more queued requests are cut into several syncs. Beyond 4 MiB a sync
  /// is limited by bandwidth: a larger one only adds delay.
  StoreLimits unit_size{.batch_operations = 65'536, .batch_bytes = std::size_t{4} << 20};

  enum class Committer {
    kThread,  ///< The store has a thread that writes.
    kPump,    ///< pump() writes, on the calling thread: for tests that decide when.
  };
  Committer committer = Committer::kThread;

  /// For tests: a file system of their own, as a `leveldb::Env*`, which then must also keep a
  /// second owner out. (A std::any, as a header that named LevelDB's namespace would make
  /// `leveldb("db")` ambiguous after `using namespace pv2;`.)
  std::any env = {};
  /// For tests, with `env`: the other half of that file system, for the log and its marks.
  SegmentFiles* segment_files = nullptr;
  /// For tests, with `env`: makes the entries of a directory durable.
  std::function<Status(const std::string& directory)> sync_directory = {};
};

/// Rows in LevelDB. Thread-safe as ProcedureStore states. Destroying it without close() is a crash
/// for what is still queued: it is dropped, and the sink is not called.
class LevelDbProcedureStore final : public ProcedureStore {
 public:
  /// Touches nothing; recover_lease() opens or creates the directory `path`.
  explicit LevelDbProcedureStore(std::string path, LevelDbOptions options = {});
  ~LevelDbProcedureStore() override;

  [[nodiscard]] std::string name() const override;
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
  bool pump() override;
  void close() noexcept override;

  /// What salvage() did.
  struct Salvaged {
    bool changed = false;      ///< False: nothing was damaged, and nothing was touched.
    CommitSequence last_kept;  ///< Every commit up to this one is there; every later one is gone.
    std::string copies;        ///< The directory with the logs as they were.
    std::string report;        ///< The same in words, for the operator.
  };
  /// Gives up what the log of a store that recover_lease() refused has behind a damage, so that it
  /// opens again. This loses acknowledged commits, so the library never calls it by itself. The
  /// logs are copied aside first. kNotSupported: a damaged table or MANIFEST, or only a state
  /// could be left that no commit has made. The store must not be open (kBusy).
  static Result<Salvaged> salvage(const std::string& path);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A LevelDbProcedureStore in the directory `path`: `.store = pv2::leveldb("orders.db")`. Say
/// `pv2::` where LevelDB's own headers are included too: its namespace has the same name.
[[nodiscard]] std::unique_ptr<ProcedureStore> leveldb(std::string path,
                                                      LevelDbOptions options = {});

}  // namespace pv2
