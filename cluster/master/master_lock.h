// SPDX-License-Identifier: Apache-2.0
//
// MasterLock: keeps a second master of the same directory from starting. The lock is the system's,
// so it ends with its process, however that dies.

#pragma once

#include <pv2/base/status.h>

#include <memory>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"

namespace pv2::cluster {

/// Held until it is destroyed. `files` outlives it.
class MasterLock {
 public:
  /// kUnavailable: another master has it.
  [[nodiscard]] static Result<std::unique_ptr<MasterLock>> take(const FileTree& files,
                                                                const ClusterLayout& layout);
  ~MasterLock();
  MasterLock(const MasterLock&) = delete;
  MasterLock& operator=(const MasterLock&) = delete;

 private:
  MasterLock(const FileTree& files, leveldb::FileLock* lock) : files_(files), lock_(lock) {}

  const FileTree& files_;
  leveldb::FileLock* const lock_;  // given back to the Env
};

}  // namespace pv2::cluster
