// SPDX-License-Identifier: Apache-2.0
//
// StoreFile: an immutable sorted file of cells, a LevelDB table. The last key of the table has the
// metadata. StoreFileWriter makes one.
//
// Invariant: a file has its name only when it is complete and durable.

#pragma once

#include <leveldb/table.h>
#include <leveldb/table_builder.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/cell_cursor.h"
#include "storage/file_tree.h"

namespace pv2::cluster {

/// Persisted in the file.
struct StoreFileMeta {
  std::uint64_t max_sequence = 0;  ///< Of the cells; 0: there are none.
  std::uint64_t cells = 0;

  void fields(auto& f) {
    f(1, "max_sequence", max_sequence);
    f(2, "cells", cells);
  }
};

/// Owned by one thread. The destructor removes a file that was not finished; what a crash leaves,
/// the next opening of the region removes.
class StoreFileWriter {
 public:
  [[nodiscard]] static Result<std::unique_ptr<StoreFileWriter>> create(const FileTree& files,
                                                                       std::string path);
  ~StoreFileWriter();

  /// In the order of keys, without repeats.
  Status add(std::string_view key, std::string_view value);
  /// Makes the file durable under its name.
  Status finish();
  [[nodiscard]] const StoreFileMeta& meta() const noexcept { return meta_; }

 private:
  StoreFileWriter(const FileTree& files, std::string path,
                  std::unique_ptr<leveldb::WritableFile> file);
  [[nodiscard]] std::string draft() const { return path_ + "~"; }

  const FileTree& files_;
  const std::string path_;
  std::unique_ptr<leveldb::WritableFile> file_;
  std::unique_ptr<leveldb::TableBuilder> builder_;
  StoreFileMeta meta_;
  bool finished_ = false;  ///< The table is complete.
  bool is_named_ = false;  ///< And durable under its name.
};

/// Thread-safe.
class StoreFile {
 public:
  /// kNotFound, kCorruption.
  [[nodiscard]] static Result<std::shared_ptr<StoreFile>> open(const FileTree& files,
                                                               const std::string& path);

  [[nodiscard]] const StoreFileMeta& meta() const noexcept { return meta_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// What counts of a file.
  struct Part {
    std::vector<std::string> hidden{};  ///< Families whose cells do not: shown as deleted.
    std::string start_row{};            ///< Inclusive.
    std::string end_row{};              ///< Exclusive; empty: to the end.

    [[nodiscard]] bool is_all() const {
      return hidden.empty() && start_row.empty() && end_row.empty();
    }
  };
  /// A walk over the cells of a part. The cursor is the second owner of the file: a compaction ends
  /// the region's ownership while readers go on.
  [[nodiscard]] static std::unique_ptr<CellCursor> cursor(std::shared_ptr<const StoreFile> file,
                                                          Part part);

 private:
  class Cursor;
  StoreFile() = default;

  // Destroyed in reverse order: the table reads from the file.
  std::unique_ptr<leveldb::RandomAccessFile> file_;
  std::unique_ptr<leveldb::Table> table_;
  StoreFileMeta meta_;
  std::uint64_t bytes_ = 0;
};

}  // namespace pv2::cluster
