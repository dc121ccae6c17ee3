// SPDX-License-Identifier: Apache-2.0
//
// A file of the operating system. A write that is cut short is continued: the kernel may do that at
// any signal. What is written durably goes past the page cache (O_DIRECT), on file systems that are
// known to make it durable.

#include "log/system_file.h"

#include <linux/magic.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "pv2/base/assert.h"

namespace pv2 {
namespace {

// Whether `error` may mean that direct writes, or pwritev2(), are not to be had. EPERM: some
// sandboxes. A write that failed with any other error is not tried another way: what a disk did not
// take once, a second write may seem to have given it.
bool may_be_refusal(int error) noexcept {
  return error == EINVAL || error == EOPNOTSUPP || error == ENOSYS || error == EPERM;
}

class SystemFile final : public SegmentFile {
 public:
  SystemFile(std::string path, int fd, const FileCalls& calls)
      : path_(std::move(path)), fd_(fd), calls_(calls), size_(::lseek(fd, 0, SEEK_END)) {}
  ~SystemFile() override { ::close(fd_); }
  SystemFile(const SystemFile&) = delete;
  SystemFile& operator=(const SystemFile&) = delete;

  Status write(std::uint64_t offset, std::string_view bytes) override {
    if (is_direct_) is_direct_ = !change_flags(0, O_DIRECT);
    const int error = write_all(offset, bytes, 0);
    if (error != 0) return system_failure("writing", path_, error);
    if (grows(offset + bytes.size())) size_ = static_cast<off_t>(offset + bytes.size());
    return Status();
  }
  Status sync() override {
    while (calls_.fdatasync(fd_) != 0) {
      if (errno != EINTR) return system_failure("syncing", path_);
    }
    return check_name();
  }
  // Where the kernel, the file system or the disk cannot do it, or not with such blocks, the file
  // is written and synced like any other. So is what makes the file grow: ext4 of Linux 5.5 to 6.6
  // does not sync the new size of a direct write ("ext4: properly sync file size update after
  // O_SYNC direct IO").
  Status write_durably(std::uint64_t offset, std::string_view blocks) override {
    assert_blocks(offset, blocks);
    if (grows(offset + blocks.size()) || !begin_direct())
      return SegmentFile::write_durably(offset, blocks);
    const int error = write_all(offset, blocks, RWF_DSYNC);
    if (error == 0) return check_name();
    if (!may_be_refusal(error)) return system_failure("writing", path_, error);
    may_be_direct_ = false;
    return SegmentFile::write_durably(offset, blocks);
  }
  Status cut(std::uint64_t bytes) override {
    struct stat facts {};
    if (::fstat(fd_, &facts) != 0) return system_failure("looking at", path_);
    if (static_cast<std::uint64_t>(facts.st_size) <= bytes) return Status();
    if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return system_failure("cutting", path_);
    size_ = static_cast<off_t>(bytes);
    return Status();
  }

 private:
  // Whether the file is shorter than `end`. One whose size is not known is.
  [[nodiscard]] bool grows(std::uint64_t end) const noexcept {
    return size_ < 0 || end > static_cast<std::uint64_t>(size_);
  }
  // Returns whether writes go past the page cache from here on.
  bool begin_direct() {
    if (!is_direct_ && may_be_direct_) {
      is_direct_ = syncs_direct_writes() && change_flags(O_DIRECT, 0);
      may_be_direct_ = is_direct_;
    }
    return may_be_direct_;
  }
  // Whether a direct write with RWF_DSYNC is durable when it returns. A FUSE server need not sync
  // for it, and what other file systems do was not looked at. Ext2 and ext3 have the number of
  // ext4.
  [[nodiscard]] bool syncs_direct_writes() const {
    constexpr decltype(statfs::f_type) kXfs = 0x58465342;  // not in linux/magic.h everywhere
    struct statfs facts {};
    if (calls_.fstatfs(fd_, &facts) != 0) return false;
    return facts.f_type == EXT4_SUPER_MAGIC || facts.f_type == kXfs ||
           facts.f_type == BTRFS_SUPER_MAGIC || facts.f_type == TMPFS_MAGIC;
  }
  // Returns whether it could.
  [[nodiscard]] bool change_flags(int set, int clear) const {
    const int flags = calls_.fcntl(fd_, F_GETFL);
    return flags >= 0 && calls_.fcntl(fd_, F_SETFL, (flags | set) & ~clear) == 0;
  }
  // 0, or the error.
  [[nodiscard]] int write_all(std::uint64_t offset, std::string_view bytes, int flags) const {
    while (!bytes.empty()) {
      const auto at = static_cast<off_t>(offset);
      const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
      const ssize_t written = flags == 0 ? calls_.pwrite(fd_, bytes.data(), bytes.size(), at)
                                         : calls_.pwritev2(fd_, &piece, 1, at, flags);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno;
      if (written == 0) return EIO;
      bytes.remove_prefix(static_cast<std::size_t>(written));
      offset += static_cast<std::uint64_t>(written);
    }
    return 0;
  }
  // Asks for the number of names alone. Who asks for the times, as fstat() does, makes Linux give
  // the next write a new time (multigrain timestamps, since 6.13), which costs 40 us per sync.
  [[nodiscard]] Status check_name() const {
    struct statx facts {};
    if (::statx(fd_, "", AT_EMPTY_PATH, STATX_NLINK, &facts) == 0 &&
        (facts.stx_mask & STATX_NLINK) != 0) {
      return still_named(facts.stx_nlink);
    }
    struct stat known {};  // some sandboxes forbid statx()
    if (::fstat(fd_, &known) != 0) return system_failure("looking at", path_);
    return still_named(known.st_nlink);
  }
  [[nodiscard]] Status still_named(std::uint64_t names) const {
    if (names != 0) return Status();
    return Status(StatusCode::kIoError, path_ + " was removed in use");
  }

  const std::string path_;
  const int fd_;
  const FileCalls calls_;
  off_t size_;                 // of the file; below 0: not known
  bool is_direct_ = false;     // writes go past the page cache
  bool may_be_direct_ = true;  // nothing has spoken against it
};

}  // namespace

Result<std::unique_ptr<SegmentFile>> open_system_file(const std::string& path, int flags,
                                                      const FileCalls& calls) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0644);
  if (fd < 0) return system_failure("opening", path);
  return std::unique_ptr<SegmentFile>(std::make_unique<SystemFile>(path, fd, calls));
}

void assert_blocks(std::uint64_t offset, std::string_view blocks) {
  const auto address = reinterpret_cast<std::uintptr_t>(blocks.data());
  PV2_ASSERT(offset % SegmentFile::kBlockBytes == 0 &&
                 blocks.size() % SegmentFile::kBlockBytes == 0 &&
                 address % SegmentFile::kBlockBytes == 0,
             "what is written durably is whole blocks");
}

Status system_failure(std::string_view act, const std::string& path) {
  return system_failure(act, path, errno);
}

Status system_failure(std::string_view act, const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  return Status(full ? StatusCode::kStorageFull : StatusCode::kIoError,
                std::string(act) + " " + path + ": " + std::generic_category().message(error));
}

}  // namespace pv2
