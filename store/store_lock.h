// SPDX-License-Identifier: Apache-2.0
//
// StoreLock: keeps a second owner away from a directory, and tells it who the first one is. The
// lock is the kernel's (flock), so it ends with its process however that dies; the text in the file
// is for people and may be stale.

#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "pv2/base/status.h"

namespace pv2 {

/// The status for a store whose directory `store` is no longer there; `what` begins the reason:
/// "its lock is".
Status store_is_gone(const std::string& store, std::string_view what);

/// An flock on one file. Owned by one thread.
class StoreLock {
 public:
  StoreLock() = default;
  ~StoreLock() { release(); }
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

  /// Takes the lock of `file`, or says who holds it (kBusy). Never waits. `store` is for messages.
  Status acquire(const std::string& file, const std::string& store);
  void release() noexcept;

  /// Whether `file` is still the one that is locked (if not, kIoError): after its directory is
  /// removed or moved away, this process would go on with files that nobody will find. Also
  /// kIoError, with other words: that cannot be found out.
  [[nodiscard]] Status check(const std::string& file, const std::string& store) const;

 private:
  int fd_ = -1;
  // Device and inode of the locked file. They do not change while it is open.
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace pv2
