// SPDX-License-Identifier: Apache-2.0
//
// A file of the operating system, and the calls that write it. A test gives answers of its own,
// because most of what a kernel, a file system or a disk may refuse is not to be had on the machine
// that runs it.

#pragma once

#include <fcntl.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pv2/base/status.h"
#include "pv2/store/segment_files.h"

namespace pv2 {

/// The system's calls by which bytes get into a file and onto the disk. Each answers as its manual
/// page says, with the error in errno.
struct FileCalls {
  int (*fstatfs)(int, struct statfs*) = ::fstatfs;
  int (*fcntl)(int, int, ...) = ::fcntl;
  ssize_t (*pwrite)(int, const void*, std::size_t, off_t) = ::pwrite;
  ssize_t (*pwritev2)(int, const iovec*, int, off_t, int) = ::pwritev2;
  int (*fdatasync)(int) = ::fdatasync;
};

/// Opens `path` for writing; `flags` are further ones of open().
Result<std::unique_ptr<SegmentFile>> open_system_file(const std::string& path, int flags,
                                                      const FileCalls& calls = {});

/// What SegmentFile::write_durably() asks of its caller.
void assert_blocks(std::uint64_t offset, std::string_view blocks);

/// "writing /path: Input/output error", for errno if nothing else is given. A full disk is
/// kStorageFull.
Status system_failure(std::string_view act, const std::string& path);
Status system_failure(std::string_view act, const std::string& path, int error);

}  // namespace pv2
