// SPDX-License-Identifier: Apache-2.0
//
// The file operations of the small cluster. They use system calls, because the standard library
// cannot sync.

#include "cluster/disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace pv2::internal {
namespace {

/// A descriptor that is closed at the end of its scope. Owned by one thread.
class File {
 public:
  File(const std::filesystem::path& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] bool ok() const { return fd_ >= 0; }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Status io_error(std::string_view act, const std::filesystem::path& path) {
  const int error = errno;
  return {StatusCode::kIoError,
          "cannot " + std::string(act) + ' ' + path.string() + ": " + std::strerror(error)};
}

Status sync_directory(const std::filesystem::path& path) {
  const File directory(path, O_RDONLY | O_DIRECTORY);
  if (!directory.ok()) return io_error("open directory", path);
  if (::fsync(directory.fd()) != 0) return io_error("sync directory", path);
  return {};
}

Status make_directory(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), 0755) == 0) return sync_directory(path.parent_path());
  if (errno == EEXIST) return {};
  return io_error("create directory", path);
}

Status write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::path temporary = path;
  temporary += ".new";
  {
    const File file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file.ok()) return io_error("create", temporary);
    for (std::string_view rest = bytes; !rest.empty();) {
      const ssize_t written = ::write(file.fd(), rest.data(), rest.size());
      if (written < 0) return io_error("write", temporary);
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::fsync(file.fd()) != 0) return io_error("sync", temporary);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return io_error("rename into place", path);
  return sync_directory(path.parent_path());
}

Result<std::string> read_file(const std::filesystem::path& path) {
  const File file(path, O_RDONLY);
  if (!file.ok()) {
    if (errno == ENOENT) return Status(StatusCode::kNotFound, "there is no file " + path.string());
    return io_error("open", path);
  }
  std::string bytes;
  char block[4096];
  while (true) {
    const ssize_t got = ::read(file.fd(), block, sizeof block);
    if (got < 0) return io_error("read", path);
    if (got == 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(got));
  }
}

}  // namespace pv2::internal
