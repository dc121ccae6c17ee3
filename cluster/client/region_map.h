// SPDX-License-Identifier: Apache-2.0
//
// RegionMap: where the regions are, as far as this client knows. It asks the master for the servers
// and for the catalogue's region, reads the regions of a table from the catalogue, and keeps them
// until somebody finds them wrong. Many who ask for one table are one question.
//
// How it fails: what it says may be old; the server that is called refuses then, and the caller
// says forget() and asks again.

#pragma once

#include <pv2/procedures/region.h>
#include <pv2/procedures/server.h>
#include <pv2/procedures/table.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/server_connections.h"
#include "pv2/cluster/cell.h"
#include "pv2/cluster/server_list.h"
#include "server/master_transport.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// Where a region is.
struct RegionPlace {
  RegionInfo region;
  std::string address;
};

/// Used on the loop only. What it is given outlives it.
class RegionMap {
 public:
  template <class T>
  using Done = std::function<void(T)>;

  RegionMap(LoopTasks& tasks, RpcClient& master, MasterTransport& to_master,
            ServerConnections& connections, Duration call_timeout)
      : tasks_(tasks),
        master_(master),
        to_master_(to_master),
        connections_(connections),
        call_timeout_(call_timeout) {}

  /// The region that has a row. kNotFound: there is no such table. kUnavailable: not now.
  void find(const TableName& table, const std::string& row, Done<Result<RegionPlace>> done);
  /// What is known of the table is wrong, or may be.
  void forget(const TableName& table) { known_.erase(table); }

  /// Reads the regions of a table anew: in order of start keys, without those that were split.
  void read_regions(const TableName& table, Done<Result<std::vector<RegionRow>>> done);
  /// Asks the master.
  void read_servers(Done<Result<ServerList>> done);

 private:
  struct Known {
    std::vector<RegionRow> regions;
    std::map<ServerName, std::string> addresses;
  };
  using Reading = std::function<void(const Result<Known>&)>;

  void read(const TableName& table, Reading done);
  void read_rows(const TableName& table, const std::string& address,
                 const std::shared_ptr<Known>& known, Scan scan);
  void check_table(const TableName& table, const std::string& address, const Scan& scan);
  void finish(const TableName& table, const Result<Known>& known);
  void scan_meta(const std::string& address, Scan scan, Done<Result<ScanPage>> done);
  [[nodiscard]] static Result<RegionPlace> place_of(const Known& known, const TableName& table,
                                                    const std::string& row);

  LoopTasks& tasks_;
  RpcClient& master_;
  MasterTransport& to_master_;
  ServerConnections& connections_;
  const Duration call_timeout_;
  std::map<TableName, Known> known_;
  std::map<TableName, std::vector<Reading>> readings_;  ///< Who waits for what is being read.
};

}  // namespace pv2::cluster
