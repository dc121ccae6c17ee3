// SPDX-License-Identifier: Apache-2.0
//
// What a segment's file is on every file system, and the files of the operating system.

#include "pv2/store/segment_files.h"

#include <fcntl.h>
#include <sys/statvfs.h>

#include "log/system_file.h"

namespace pv2 {
namespace {

class SystemFiles final : public SegmentFiles {
  Result<std::unique_ptr<SegmentFile>> create(const std::string& path) override {
    return open_system_file(path, O_CREAT | O_EXCL);
  }
  Result<std::unique_ptr<SegmentFile>> open(const std::string& path) override {
    return open_system_file(path, 0);
  }
  Result<std::uint64_t> free_bytes(const std::string& directory) override {
    struct statvfs facts {};
    if (::statvfs(directory.c_str(), &facts) != 0) return system_failure("looking at", directory);
    return std::uint64_t{facts.f_bavail} * facts.f_frsize;
  }
};

}  // namespace

Status SegmentFile::write_durably(std::uint64_t offset, std::string_view blocks) {
  assert_blocks(offset, blocks);
  Status status = write(offset, blocks);
  return status.ok() ? sync() : status;
}

SegmentFiles& system_segment_files() {
  static SystemFiles files;
  return files;
}

}  // namespace pv2
