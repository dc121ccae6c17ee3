// SPDX-License-Identifier: Apache-2.0
//
// MemoryWorld: the state of a cluster in memory, and what each call does to it. It models what the
// procedures rely on: what a server has only in memory is lost when it dies, what it logged is
// found by whoever splits the log, and what is in a region's directory stays. Data are rows without
// a value: a row that was written and acknowledged has to be readable for ever.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pv2/procedures/catalogue_state.h"
#include "pv2/procedures/cluster_snapshot.h"
#include "pv2/procedures/peer.h"
#include "pv2/procedures/server_calls.h"

namespace pv2 {

/// Guarded by its owner.
class MemoryWorld {
 public:
  using Rows = std::set<std::string>;

  /// What a server has of a region that it opened.
  struct OpenedRegion {
    RegionInfo info;
    std::uint64_t sequence = 0;
    std::string effect_key;  ///< Of the operation that opened it.
    bool serves = false;     ///< The report of that operation was accepted.
    Rows rows;               ///< In memory only, and in the log.
  };
  struct Log {
    std::string name;
    std::vector<std::pair<std::string, std::string>> edits;  ///< Region id and row.
  };
  struct Server {
    bool alive = true;
    bool registered = true;
    std::map<std::string, OpenedRegion> open;
    std::map<std::string, DispatchOutcome> answered;  ///< By effect key, to be repeated.
    std::map<std::string, RemoteReport> reported;     ///< By effect key.
    std::map<LogKind, std::vector<Log>> logs;
    std::map<std::string, PeerRow> peers;  ///< What it knows of them.
  };
  struct RegionDirectory {
    RegionInfo info;
    Rows rows;
    Rows recovered;  ///< Split from the logs of a dead server, and not replayed yet.
    std::uint64_t max_sequence = 0;
  };
  struct TableDirectory {
    std::optional<TableDescriptor> descriptor;
    std::map<std::string, RegionDirectory> regions;
  };

  CatalogueState catalogue;
  std::set<std::string> namespace_directories;
  std::map<TableName, TableDirectory> tables;
  std::map<TableName, TableDescriptor> cached;
  std::map<ServerName, Server> servers;
  std::map<std::string, PeerRow> peers;
  std::set<std::string> damaged_peers;                  ///< Of `peers`: they cannot be read.
  std::set<std::pair<std::string, ServerName>> queues;  ///< Peer and server.
  std::map<std::string, unsigned> effects;
  std::uint64_t looks = 0;  ///< How often somebody has asked for the name of a log.

  ServerName add_server(std::string_view host);
  /// What the server has in memory is gone; its logs and queues stay.
  void kill(Server& server);
  /// A server that is alive and serves the region of the row logs it, and says so.
  bool write_row(const TableName& table, const std::string& row);
  /// All rows of the table that can be read now.
  [[nodiscard]] Rows readable_rows(const TableName& table) const;
  /// Whether the catalogue's table can be read and written: its region, if there is one, is served.
  [[nodiscard]] bool catalogue_is_online() const;

  // The calls of TableFiles. With `half`, a part of the work stays undone.
  void lay_out(const TableDescriptor& descriptor, const std::vector<RegionInfo>& regions, bool half,
               const std::string& effect_key);
  void archive_table(const TableName& table, bool half);
  void make_references(const std::vector<RegionInfo>& parents,
                       const std::vector<RegionInfo>& children, bool half,
                       const std::string& effect_key);
  void carry_sequences(const std::vector<RegionInfo>& parents,
                       const std::vector<RegionInfo>& children, bool half);
  void remove_regions(const std::vector<RegionInfo>& regions, bool half);
  [[nodiscard]] bool has_recovered_edits(const std::vector<RegionInfo>& regions) const;

  /// What a server does with an operation; what it will report is in `reported`.
  enum class Mood { kWilling, kRefuses, kFails };
  DispatchOutcome execute(Server& server, const RemoteOperation& operation, Mood mood);
  /// The report was accepted: from now on the server serves what it has opened.
  void accept(Server& server, const RemoteReport& report);

  void forget_effects();

  void describe(ClusterSnapshot& snapshot) const;

 private:
  [[nodiscard]] RegionDirectory* directory_of(const RegionInfo& region);
  RemoteReport run(Server& server, const RemoteOperation& operation);
  void split_log(const RemoteOperation& operation);

  std::uint64_t last_start_code_ = 100;
};

}  // namespace pv2
