// SPDX-License-Identifier: Apache-2.0
//
// SteadyWritesEnv: has LevelDB's logs and tables written out while they grow. LevelDB syncs such a
// file when it has up to 17 MB, with the default options, and a sync of the step log that comes
// meanwhile waits for all of that: several milliseconds, and not a tenth of one. So each 256 KiB
// are on their way to the disk before the next ones come. What makes bytes durable is LevelDB's own
// sync, which then finds little left.
//
// How it fails: a file system may drop bytes that it cannot write, and may report that to the call
// that started the write and to no later call. So after a failed step, each flush and sync of the
// file fails. Where the system has no such call, only the sync writes the bytes.

#pragma once

#include <leveldb/env.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace pv2 {

/// As thread-safe as the Env it wraps, which outlives it.
class SteadyWritesEnv final : public leveldb::EnvWrapper {
 public:
  /// Starts to write `bytes` bytes of an open file, from `offset` on, to the disk. The call rarely
  /// waits for the disk. It returns 0 or an errno. ENOSYS means that the file can be written by a
  /// sync only.
  using WriteOut = std::function<int(int fd, std::uint64_t offset, std::uint64_t bytes)>;
  /// The WriteOut of a store: sync_file_range().
  static int write_out_by_system(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;

  /// A file is written out in steps of this many bytes. Steps of 32 KiB to 512 KiB were equally
  /// fast (decision 37).
  static constexpr std::uint64_t kStep = std::uint64_t{256} << 10;
  /// A step ends at a multiple of 64 KiB, which is a multiple of every page size. LevelDB appends
  /// to the page behind it: the disk would get that page twice, and some file systems block an
  /// append to a page that is being written.
  static constexpr std::uint64_t kPage = std::uint64_t{64} << 10;

  SteadyWritesEnv(leveldb::Env& env, WriteOut write_out)
      : EnvWrapper(&env), write_out_(std::move(write_out)) {}

  leveldb::Status NewWritableFile(const std::string& file, leveldb::WritableFile** result) override;

 private:
  class File;

  const WriteOut write_out_;
};

}  // namespace pv2
