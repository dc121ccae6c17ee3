// SPDX-License-Identifier: Apache-2.0
//
// RegionUpkeep: keeps the memory, the logs and the files of a server within their bounds: it
// flushes the largest regions, and those that keep old logs, and compacts regions with many files
// or with files of a parent. It also forgets nonces whose time is over.
//
// How it fails: a flush or compaction that fails is said in the log, and tried again after a pause
// (region_pauses.h); meanwhile the other regions get their turn. The server ends when the region
// refuses everything, because a later opening of it was found.

#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <set>
#include <string>

#include "server/region_nonces.h"
#include "server/region_pauses.h"
#include "server/region_table.h"
#include "server/server_context.h"

namespace pv2::cluster {

/// What the regions of users, or that of the catalogue, have in memory: when it was last counted,
/// with what was written since. Thread-safe: a write says what it took when it is computed, because
/// appends and deletions of rows take more than their request has.
class MemoryShare {
 public:
  explicit MemoryShare(std::size_t most) : most_(most) {}

  void set(std::size_t bytes) noexcept { bytes_ = bytes; }
  void add(std::size_t bytes) noexcept { bytes_ += bytes; }
  /// Something is to be flushed.
  [[nodiscard]] bool is_full(std::size_t more = 0) const noexcept { return bytes_ + more > most_; }
  /// Nothing may be written.
  [[nodiscard]] bool is_beyond(std::size_t more = 0) const noexcept {
    return (bytes_ + more) / 2 > most_;
  }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> bytes_ = 0;  // relaxed would do: it orders nothing
};

/// Used on the loop only.
class RegionUpkeep {
 public:
  using Done = std::function<void(Status)>;

  RegionUpkeep(ServerContext& context, RegionTable& table, const RegionNonces& nonces)
      : context_(context), table_(table), nonces_(nonces) {}

  /// From now on it looks by itself from time to time.
  void start();

  /// False: there is no room now for a write of the region with so many bytes.
  [[nodiscard]] bool admit(const RegionTable::Entry& entry, std::size_t bytes);
  /// Where writes of the region count what they take.
  [[nodiscard]] MemoryShare& share_of(const TableName& table) { return share_of(is_meta(table)); }
  /// Flushes a region, and tells its log. `done` is called on the loop.
  void flush(const RegionTable::Entry& entry, Done done);
  void compact(const RegionTable::Entry& entry, Done done);
  /// A region that refuses everything cannot be served, and its logs are needed: the server ends.
  void end_if_broken(const RegionTable::Entry& entry);

  /// A compaction forgets a nonce only when a replay would find it too old.
  [[nodiscard]] CompactOptions forgotten_nonces() const;

 private:
  void look();
  [[nodiscard]] MemoryShare& share_of(bool is_catalogue) {
    return is_catalogue ? catalogue_ : users_;
  }
  void look_at_memory(bool is_catalogue);
  void look_at_logs();
  void look_at_files();
  void forget_nonces();
  void flush_in_background(const RegionTable::Entry& entry);
  /// Notes how work on the region has ended.
  void take_end(const RegionTable::Entry& entry, const char* what, const Status& status,
                RegionPauses& pauses);

  ServerContext& context_;
  RegionTable& table_;
  const RegionNonces& nonces_;
  MemoryShare users_{context_.options.memory_max};
  MemoryShare catalogue_{context_.options.memory_max};
  std::set<std::string> flushing_;
  RegionPauses flush_pauses_;
  RegionPauses compaction_pauses_;
  bool is_compacting_ = false;
};

}  // namespace pv2::cluster
