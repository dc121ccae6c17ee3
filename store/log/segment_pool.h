// SPDX-License-Identifier: Apache-2.0
//
// SegmentPool: the files of the step log that are free. A file is filled with zeros before it is
// used for the first time, and used again and again from then on. Each next file is four times as
// large as the one before, up to a limit, so that a small store stays small.

#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leveldb_files.h"
#include "pv2/base/mutex.h"
#include "pv2/base/status.h"
#include "pv2/store/segment_files.h"

namespace pv2 {

/// Thread-safe.
class SegmentPool {
 public:
  /// "PV2-STEPS-1", "PV2-STEPS-2", ... in the store's directory.
  static constexpr std::string_view kFilePrefix = "PV2-STEPS-";

  struct Options {
    std::size_t bytes_min = 0;  ///< Of the first file.
    std::size_t bytes_max = 0;  ///< No file is made larger; a unit that is larger makes it grow.
    std::size_t files_max = 0;  ///< Full, free and in use together.
  };
  /// A value.
  struct File {
    std::string name;
    std::size_t bytes = 0;  ///< 0: it could not be filled yet, and is not used.
    bool is_new = false;    ///< It has not been made yet.
  };

  /// Whether `name` is that of a file of a log: the prefix, then a number.
  [[nodiscard]] static bool is_name(std::string_view name) noexcept;

  SegmentPool(SegmentFiles& files, DirectorySync sync, std::string directory, Options options);

  /// A free file that an earlier process has left, under a name that is durable.
  void add(File file) PV2_EXCLUDES(files_mutex_);
  /// Makes sure that a file of the size that is wanted now is free, unless all are in use. Writes
  /// to the disk, and syncs the names of new files. A failure loses no file. Unless it is the only
  /// file, it leaves a reserve on the disk for commits and for the database.
  Status prepare() PV2_EXCLUDES(files_mutex_);
  /// The largest free file; nullopt: none is free.
  [[nodiscard]] std::optional<File> take() PV2_EXCLUDES(files_mutex_);
  /// A file that was taken is free again.
  void give_back(File file) PV2_EXCLUDES(files_mutex_);
  /// Whether take() would find one.
  [[nodiscard]] bool has_free() PV2_EXCLUDES(files_mutex_);

 private:
  // What the disk has to have left when a file was filled.
  static constexpr std::size_t kReserveBytes = std::size_t{1} << 20;

  Status fill(File& file, std::size_t bytes, bool keep_reserve) const;
  bool can_take() PV2_REQUIRES(files_mutex_);
  std::vector<File>::iterator largest() PV2_REQUIRES(files_mutex_);

  SegmentFiles& files_;
  const DirectorySync sync_;
  const std::string directory_;
  const Options options_;

  Mutex files_mutex_;
  std::vector<File> free_ PV2_GUARDED_BY(files_mutex_);
  std::size_t in_use_ PV2_GUARDED_BY(files_mutex_) = 0;   ///< Taken, or being filled.
  std::size_t highest_ PV2_GUARDED_BY(files_mutex_) = 0;  ///< The highest number in a name.
  std::size_t wanted_ PV2_GUARDED_BY(files_mutex_);       ///< The size of the next file.
};

}  // namespace pv2
