// SPDX-License-Identifier: Apache-2.0
//
// WatchedFiles: the files of a log, opened only while their directory is the one that the store
// has. A name leads into whatever directory has the store's path at that moment, and that may be a
// backup, or another store.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "pv2/store/segment_files.h"

namespace pv2 {

/// As thread-safe as `look`.
class WatchedFiles final : public SegmentFiles {
 public:
  /// `look` says whether the directory is still there, and is called before each file is opened.
  WatchedFiles(SegmentFiles& files, std::function<Status()> look)
      : files_(files), look_(std::move(look)) {}

  Result<std::unique_ptr<SegmentFile>> create(const std::string& path) override {
    if (Status there = look_(); !there.ok()) return there;
    return files_.create(path);
  }
  Result<std::unique_ptr<SegmentFile>> open(const std::string& path) override {
    if (Status there = look_(); !there.ok()) return there;
    return files_.open(path);
  }
  Result<std::uint64_t> free_bytes(const std::string& directory) override {
    return files_.free_bytes(directory);
  }

 private:
  SegmentFiles& files_;
  const std::function<Status()> look_;
};

}  // namespace pv2
