// SPDX-License-Identifier: Apache-2.0
//
// SteadyWritesEnv: has LevelDB's logs and tables written out while they grow. LevelDB syncs such a
// file when it has up to 17 MB, with the default options, and a sync of the step log that comes
// meanwhile waits for all of that: several milliseconds, and not a tenth of one. So each 256 KiB
// are on their way to the disk before the next ones come. What makes bytes durable is LevelDB's own
// sync, which then finds little left.
//
// How it fails: file systems may drop bytes that they could not write, and report that to the call
// that began to write them and to no later one. So a failure is one of the file, and its sync fails
// too. A system that has no such call only makes the sync take longer.

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
  /// Begins to write out so many bytes of an open file from `offset` on, and usually does not wait
  /// for the disk. Returns 0, or an errno; ENOSYS: it can never be done.
  using WriteOut = std::function<int(int fd, std::uint64_t offset, std::uint64_t bytes)>;
  static int write_out_by_system(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;

  /// After so many bytes. From 32 KiB to 512 KiB it makes no difference (decision 37).
  static constexpr std::uint64_t kStep = std::uint64_t{256} << 10;
  /// Whole pages, of any machine: the last one, in which the next bytes come, would be written
  /// twice, and some file systems make whoever writes into a page wait until it is on the disk.
  static constexpr std::uint64_t kPage = std::uint64_t{64} << 10;

  SteadyWritesEnv(leveldb::Env& env, WriteOut write_out)
      : EnvWrapper(&env), write_out_(std::move(write_out)) {}

  leveldb::Status NewWritableFile(const std::string& file, leveldb::WritableFile** result) override;

 private:
  class File;

  const WriteOut write_out_;
};

}  // namespace pv2
