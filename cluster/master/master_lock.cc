// SPDX-License-Identifier: Apache-2.0
//
// A lock on the file master/lock.

#include "master/master_lock.h"

namespace pv2::cluster {

Result<std::unique_ptr<MasterLock>> MasterLock::take(const FileTree& files,
                                                     const ClusterLayout& layout) {
  if (Status bad = files.make_directories(layout.master()); !bad.ok()) return bad;
  leveldb::FileLock* lock = nullptr;
  const leveldb::Status locked = files.env().LockFile(layout.master() + "/lock", &lock);
  if (!locked.ok()) {
    return Status(StatusCode::kUnavailable, "another master works on " + layout.root() + " (" +
                                                locked.ToString() + "); end it first");
  }
  return std::unique_ptr<MasterLock>(new MasterLock(files, lock));
}

MasterLock::~MasterLock() { files_.env().UnlockFile(lock_); }

}  // namespace pv2::cluster
