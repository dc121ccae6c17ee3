// SPDX-License-Identifier: Apache-2.0
//
// StoreLock. The modification time of the file says since when the lock is held: the holder writes
// its name once, when it gets the lock.

#include "store_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <string_view>
#include <system_error>

#include "pv2/base/assert.h"

namespace pv2 {
namespace {

// "1234 (orders-server)": a number alone says little once the process has restarted.
std::string describe_this_process() {
  std::string command;
  std::getline(std::ifstream("/proc/self/comm"), command);
  return command.empty() ? fmt::format("{}", ::getpid())
                         : fmt::format("{} ({})", ::getpid(), command);
}

std::string read_holder(int fd) {
  std::array<char, 128> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  std::string holder(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!holder.empty() && holder.back() == '\n') holder.pop_back();
  if (holder.empty()) return "another process";

  holder = "process " + holder;
  struct stat facts {};
  std::tm utc{};
  if (::fstat(fd, &facts) == 0 && ::gmtime_r(&facts.st_mtime, &utc) != nullptr) {
    std::array<char, 64> time{};
    const std::size_t length =
        std::strftime(time.data(), time.size(), " since %Y-%m-%d %H:%M:%S UTC", &utc);
    holder.append(time.data(), length);
  }
  return holder;
}

}  // namespace

Status store_is_gone(const std::string& store, std::string_view what) {
  return Status(
      StatusCode::kIoError,
      fmt::format("store {} was removed, moved or replaced while it is in use: {} not the "
                  "file that this process opened. Stop the process, and restore the "
                  "directory or a backup before it starts again: what is committed now "
                  "would be lost",
                  store, what));
}

Status StoreLock::acquire(const std::string& file, const std::string& store) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    const int error = errno;
    const bool refused = error == EACCES || error == EPERM;
    return Status(StatusCode::kIoError,
                  fmt::format("cannot open {}: {}{}", file, std::generic_category().message(error),
                              refused ? "; the process needs permission to read and write the "
                                        "directory and everything in it"
                              : error == EROFS ? "; a store cannot be opened without writing: "
                                                 "mount the file system for writing, or copy the "
                                                 "directory elsewhere"
                                               : ""));
  }
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) {
    const int error = errno;
    ::close(fd);
    return Status(StatusCode::kIoError, fmt::format("cannot look at {}: {}", file,
                                                    std::generic_category().message(error)));
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    const std::string holder = read_holder(fd);
    ::close(fd);
    if (error != EWOULDBLOCK) {
      return Status(StatusCode::kIoError, fmt::format("cannot lock {}: {}", file,
                                                      std::generic_category().message(error)));
    }
    return Status(
        StatusCode::kBusy,
        fmt::format("store {} is in use by {}; stop it or use another directory", store, holder));
  }

  const std::string self = describe_this_process() + "\n";
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, self.data(), self.size(), 0) < 0) {
    // The lock is held all the same; only the holder's name is missing. A full disk must not keep a
    // store from opening here.
  }
  fd_ = fd;
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
  return Status();
}

Status StoreLock::check(const std::string& file, const std::string& store) const {
  PV2_ASSERT(fd_ >= 0, "a store looks for its lock while it has one");
  struct stat named {};
  const int error = ::stat(file.c_str(), &named) == 0 ? 0 : errno;
  if (error == 0 && named.st_dev == device_ && named.st_ino == inode_) return Status();
  if (error == 0 || error == ENOENT || error == ENOTDIR) return store_is_gone(store, file + " is");
  return Status(StatusCode::kIoError,
                fmt::format("store {}: cannot look at {}: {}; so whether the store is still at its "
                            "path is not known. Start the process again when that can be read",
                            store, file, std::generic_category().message(error)));
}

void StoreLock::release() noexcept {
  if (fd_ < 0) return;
  // The file stays: removing it would let two processes lock two files of the same name.
  static_cast<void>(::ftruncate(fd_, 0) == 0);
  ::close(fd_);
  fd_ = -1;
}

}  // namespace pv2
