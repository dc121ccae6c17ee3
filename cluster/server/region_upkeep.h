// SPDX-License-Identifier: Apache-2.0
//
// RegionUpkeep: keeps the memory, the logs and the files of a server within their bounds: it
// flushes the largest regions, and those that keep old logs, and compacts regions with many files
// or with files of a parent. It also forgets nonces whose time is over.
//
// How it fails: a flush that fails ends the server, because the region refuses everything from then
// on. A compaction that fails is said in the log, and tried again later.

#pragma once

#include <pv2/idempotency/server_nonce_manager.h>

#include <cstddef>
#include <functional>
#include <set>
#include <string>

#include "server/region_table.h"
#include "server/server_context.h"

namespace pv2::cluster {

/// Used on the loop only.
class RegionUpkeep {
 public:
  using Done = std::function<void(Status)>;

  RegionUpkeep(ServerContext& context, RegionTable& table, ServerNonceManager& nonces)
      : context_(context), table_(table), nonces_(nonces) {}

  /// From now on it looks by itself from time to time.
  void start();

  /// Notes that a write will take so much memory. False: there is no room for it now.
  [[nodiscard]] bool admit(std::size_t bytes);
  /// Flushes a region, and tells its log. `done` is called on the loop.
  void flush(const RegionTable::Entry& entry, Done done);
  void compact(const RegionTable::Entry& entry, Done done);
  /// A region that refuses everything cannot be served, and its logs are needed: the server ends.
  void end_if_broken(const RegionTable::Entry& entry);

  /// A compaction forgets a nonce only when a replay would find it too old.
  [[nodiscard]] CompactOptions forgotten_nonces() const;

 private:
  void look();
  void look_at_memory();
  void look_at_logs();
  void look_at_files();
  void forget_nonces();
  void flush_in_background(const RegionTable::Entry& entry);

  ServerContext& context_;
  RegionTable& table_;
  ServerNonceManager& nonces_;
  std::size_t memory_bytes_ = 0;  ///< When it was last counted, with what was written since.
  std::set<std::string> flushing_;
  bool is_compacting_ = false;
};

}  // namespace pv2::cluster
