// SPDX-License-Identifier: Apache-2.0
//
// SteadyWritesEnv: has LevelDB's logs and tables written out while they grow. LevelDB syncs such a
// file once, when it has up to 16 MiB, and a sync of the step log that comes meanwhile waits for
// all of that: several milliseconds, and not a tenth of one. So each 256 KiB are on their way to
// the disk before the next ones come. It is a hint: what makes bytes durable is LevelDB's own sync,
// which then finds little left.

#pragma once

#include <leveldb/env.h>

#include <cstdint>
#include <functional>
#include <string>

namespace pv2 {

/// As thread-safe as the Env it wraps, which outlives it.
class SteadyWritesEnv final : public leveldb::EnvWrapper {
 public:
  /// Begins to write out so many bytes of an open file from `offset` on, and does not wait for the
  /// disk. Whether it succeeds makes no difference.
  using WriteOut = std::function<void(int fd, std::uint64_t offset, std::uint64_t bytes)>;

  /// After so many bytes.
  static constexpr std::uint64_t kStep = std::uint64_t{256} << 10;

  explicit SteadyWritesEnv(leveldb::Env& env, WriteOut write_out = &write_out_by_system)
      : EnvWrapper(&env), write_out_(std::move(write_out)) {}

  leveldb::Status NewWritableFile(const std::string& file, leveldb::WritableFile** result) override;

 private:
  class File;
  static void write_out_by_system(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;

  const WriteOut write_out_;
};

}  // namespace pv2
