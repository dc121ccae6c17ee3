// SPDX-License-Identifier: Apache-2.0
//
// What the master tells of the servers of a cluster, and what a server tells of itself. Plain
// values; the numbers are those on the wire.

#pragma once

#include <pv2/base/time.h>
#include <pv2/procedures/peer.h>
#include <pv2/procedures/region.h>
#include <pv2/procedures/server.h>

#include <cstdint>
#include <string>
#include <vector>

namespace pv2::cluster {

/// A server that lives.
struct ServerEntry {
  ServerName name;
  std::string address;
  std::uint64_t regions = 0;
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  Duration silent{};  ///< Since its last heartbeat.

  void fields(auto& f) {
    f(1, "name", name);
    f(2, "address", address);
    f(3, "regions", regions);
    f(4, "requests", requests);
    f(5, "bytes", bytes);
    f(6, "silent", silent);
  }
};

/// Answers master.servers.
struct ServerList {
  std::vector<ServerEntry> live;
  std::vector<ServerRow> dead;
  RegionRow meta;  ///< Where the catalogue's region is.
  std::uint64_t epoch = 0;

  void fields(auto& f) {
    f(1, "live", live);
    f(2, "dead", dead);
    f(3, "meta", meta);
    f(4, "epoch", epoch);
  }
};

/// A region on a server.
struct RegionStatus {
  RegionInfo region;
  std::uint64_t sequence = 0;  ///< Of its opening.
  bool serves = false;         ///< The master has taken the report of its opening.
  std::uint64_t bytes = 0;

  void fields(auto& f) {
    f(1, "region", region);
    f(2, "sequence", sequence);
    f(3, "serves", serves);
    f(4, "bytes", bytes);
  }
};

/// How far a server has shipped the logs of one server, mostly its own, to a peer.
struct QueueStatus {
  ServerName owner;  ///< Whose logs: this server's, or those of a dead one that it has claimed.
  std::uint64_t log = 0;
  std::uint64_t offset = 0;         ///< In that log: everything before it was shipped.
  std::uint64_t bytes_behind = 0;   ///< Of logs, with what is not for the peer.
  std::uint64_t edits_shipped = 0;  ///< Since the server has the queue.
  std::string problem;              ///< Why nothing is shipped just now; empty: nothing is wrong.

  void fields(auto& f) {
    f(1, "owner", owner);
    f(2, "log", log);
    f(3, "offset", offset);
    f(4, "bytes_behind", bytes_behind);
    f(5, "edits_shipped", edits_shipped);
    f(6, "problem", problem);
  }
};

/// What a server knows of a replication peer, and its queues for it.
struct PeerStatus {
  PeerRow peer;
  std::vector<QueueStatus> queues;

  void fields(auto& f) {
    f(1, "peer", peer);
    f(2, "queues", queues);
  }
};

/// Answers server.status.
struct ServerStatus {
  ServerName server;
  std::uint64_t epoch = 0;            ///< The greatest that it has heard.
  std::vector<RegionStatus> regions;  ///< In order of id.
  std::vector<PeerStatus> peers;      ///< In order of id.
  /// Not empty: there are more regions, from this id on. ClusterClient puts the parts together.
  std::string next_region;

  void fields(auto& f) {
    f(1, "server", server);
    f(2, "epoch", epoch);
    f(3, "regions", regions);
    f(4, "peers", peers);
    f(5, "next_region", next_region);
  }
};

}  // namespace pv2::cluster
