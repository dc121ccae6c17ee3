// SPDX-License-Identifier: Apache-2.0
//
// RegionTable: the regions that a server has, and what each may do now. It does no I/O.
//
//     (none) -> OPENING -> REPORTED -> SERVING -> CLOSING -> (none)
//                  |___________|__________________________^
//
//     OPENING    the region is being read; there is no Region yet
//     REPORTED   it is open, and the master has not taken the report yet: nothing is served
//     SERVING    clients read and write
//     CLOSING    no call begins any more; those under way end first
//
// A region that could not be opened, or that the master does not want here, goes without CLOSING.

#pragma once

#include <pv2/base/status.h>
#include <pv2/procedures/region.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pv2/cluster/server_list.h"
#include "storage/region.h"
#include "storage/server_log.h"

namespace pv2::cluster {

enum class HostedState : std::uint8_t { kOpening, kReported, kServing, kClosing };

/// A region on this server, from one order to open it on. Used on the loop only. Shared by the
/// table and by the calls that are under way.
class HostedRegion {
 public:
  HostedRegion(RegionInfo region_info, std::uint64_t order_number)
      : info(std::move(region_info)), opening(order_number) {}

  const RegionInfo info;
  const std::uint64_t opening;  ///< The number of the order to open it.
  HostedState state = HostedState::kOpening;
  std::uint64_t sequence = 0;      ///< What the master is told.
  std::shared_ptr<Region> region;  ///< None while it is being opened.
  ServerLog* log = nullptr;        ///< Where its writes go.

  [[nodiscard]] bool has_row(std::string_view row) const noexcept {
    return row >= info.start_key && (info.end_key.empty() || row < info.end_key);
  }

  // A call of a client that uses the region.
  void enter() noexcept { ++calls_; }
  void leave();
  /// Calls `idle`, in this call or when the last call has left.
  void when_idle(std::function<void()> idle);

 private:
  std::size_t calls_ = 0;
  std::function<void()> idle_;
};

/// Used on the loop only.
class RegionTable {
 public:
  using Entry = std::shared_ptr<HostedRegion>;

  RegionTable() = default;
  /// Its server's work has ended: what still waits for a region is dropped.
  ~RegionTable();
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  /// The region is not in the table.
  void add(Entry entry);
  /// Removes this entry, not a later one of the same region.
  void remove(const Entry& entry);
  [[nodiscard]] Entry find(const std::string& region_id) const;
  /// The region, if clients may use it now. kNotFound: it is elsewhere. kUnavailable: not yet.
  [[nodiscard]] Result<Entry> find_serving(const std::string& region_id) const;
  /// Those that are open.
  [[nodiscard]] std::vector<Entry> open_regions() const;
  [[nodiscard]] std::vector<RegionStatus> status() const;
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace pv2::cluster
