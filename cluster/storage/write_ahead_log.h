// SPDX-License-Identifier: Apache-2.0
//
// One file of a server's write-ahead log. WalWriter appends entries; read_wal() reads them back.
// Each entry is a frame (pv2/base/frame.h), whose bytes are
//
//     8 bytes   hash of the log's name, so that the bytes of another log are no frame of this one
//     8 bytes   the offset of the frame in the file
//     8 bytes   how much of the file was synced when the frame was written
//     n bytes   the fields of a WalEntry
//
// Invariants:
// - An entry is durable when sync() returned OK, and it may be acknowledged only then: the file was
//   under its own name after the sync. The master renames the directory first and reads afterwards,
//   so it reads whatever was acknowledged, and nothing is acknowledged after the rename.
// - The first bad frame is the end of the log, unless a later frame says that the bad one had been
//   synced. The bytes that a power cut leaves of an unsynced tail may have any hole.

#pragma once

#include <leveldb/env.h>
#include <pv2/base/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/file_tree.h"
#include "storage/wal_entry.h"

namespace pv2::cluster {

/// Owned by one thread.
class WalWriter {
 public:
  /// Makes the file, durably. `name` is ClusterLayout::log_name().
  [[nodiscard]] static Result<std::unique_ptr<WalWriter>> create(const FileTree& files,
                                                                 std::string path,
                                                                 std::string_view name);

  Status append(WalEntry& entry);
  /// Makes durable what was appended, and looks whether the log still belongs to this server.
  /// kFenced: the file is not under its name any more; nothing of this sync may be acknowledged.
  /// After a failure the writer is of no use.
  Status sync();
  /// Like the end of sync(): kFenced when the file is not under its own name.
  [[nodiscard]] Status check_fence() const;

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  WalWriter(const FileTree& files, std::string path, std::string_view name,
            std::unique_ptr<leveldb::WritableFile> file);

  const FileTree& files_;
  const std::string path_;
  const std::uint64_t name_hash_;
  std::unique_ptr<leveldb::WritableFile> file_;
  std::uint64_t size_ = 0;
  std::uint64_t synced_ = 0;
};

/// Calls `visit` for each entry of the log `name`, in order. `bytes` are those of its file. A
/// failure of `visit` ends the reading. kCorruption: an entry that was synced is damaged.
Status read_wal(std::string_view bytes, std::string_view name,
                const std::function<Status(WalEntry&)>& visit);

/// Reads a log in parts: `bytes` are those of its file from `offset` on, where a frame begins.
/// Calls `visit` for each whole frame, with the offset of the next one, until it says false.
/// Returns where the next part begins: at the first frame that is not whole in `bytes`, or is none.
[[nodiscard]] Result<std::uint64_t> read_wal_part(
    std::string_view bytes, std::uint64_t offset, std::string_view name,
    const std::function<bool(WalEntry&, std::uint64_t next)>& visit);
/// Whether a whole frame in `bytes` says that the log was synced beyond `offset`: then no frame at
/// `offset` is damage, and not the torn end of the log.
[[nodiscard]] bool has_synced_frame(std::string_view bytes, std::uint64_t offset,
                                    std::string_view name);

}  // namespace pv2::cluster
