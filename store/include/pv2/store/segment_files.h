// SPDX-License-Identifier: Apache-2.0
//
// SegmentFiles: what the step log, and the marks beside it, need of a file system and leveldb::Env
// does not have: writes at any place of a file that exists. A file that was filled with zeros once,
// and is overwritten from then on, is synced without a change of its size in the file system's
// journal (0.95 of the raw sync rate, where a growing file has 0.79). And its blocks can go to the
// disk from where they are in memory, without a copy in the page cache (docs/decisions/0040).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pv2/base/status.h"

namespace pv2 {

/// One open file. Owned by one thread at a time.
class SegmentFile {
 public:
  /// The sectors of nearly all disks are not larger.
  static constexpr std::size_t kBlockBytes = 4096;

  virtual ~SegmentFile() = default;
  /// Writes `bytes` at `offset`; the file grows if it is shorter. A failure may leave a part.
  virtual Status write(std::uint64_t offset, std::string_view bytes) = 0;
  /// Everything that was written is on stable storage when it returns OK, in a file that still has
  /// a name. Does not make that name durable.
  virtual Status sync() = 0;
  /// These blocks are on stable storage when it returns OK, in a file that still has a name. The
  /// address and the size of `blocks`, and `offset`, are multiples of kBlockBytes, and the bytes do
  /// not change meanwhile. A failure may leave a part.
  virtual Status write_durably(std::uint64_t offset, std::string_view blocks);
  /// Cuts the file to `bytes`, if it is longer, and so gives back its space.
  virtual Status cut(std::uint64_t bytes) = 0;
};

/// Opens files. Thread-safe.
class SegmentFiles {
 public:
  virtual ~SegmentFiles() = default;
  /// Makes the empty file `path` and opens it for writing. If there is such a file, fails and
  /// leaves it alone: it was out of sight when the store looked, and may hold what was
  /// acknowledged.
  virtual Result<std::unique_ptr<SegmentFile>> create(const std::string& path) = 0;
  /// Opens `path` for writing; there has to be such a file.
  virtual Result<std::unique_ptr<SegmentFile>> open(const std::string& path) = 0;
  /// How many bytes the file system of `directory` has for this process.
  virtual Result<std::uint64_t> free_bytes(const std::string& directory) = 0;
};

/// Those of the operating system. A full disk is kStorageFull.
SegmentFiles& system_segment_files();

}  // namespace pv2
