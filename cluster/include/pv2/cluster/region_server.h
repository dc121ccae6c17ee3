// SPDX-License-Identifier: Apache-2.0
//
// run_region_server(): a region server as a process. It keeps the regions that the master gives it,
// and lets clients read and write them. When it is asked to end it closes them first, and the
// master opens them elsewhere; when it is killed the master recovers them from its logs.

#pragma once

#include <pv2/base/log.h>
#include <pv2/base/time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace pv2::cluster {

/// What a region server takes from its operator. A time may be a millisecond to a year, a size at
/// most 1 TiB.
struct RegionServerOptions {
  /// Names the machine, for people and in paths: "rs1". A process has a start code besides, so each
  /// run is another server.
  std::string host{};
  /// The directory of the cluster, which all servers and the master share.
  std::string root{};
  std::string listen = "127.0.0.1:0";

  /// What the regions may have in memory. Beyond it the server flushes the largest one; beyond
  /// twice as much it refuses writes with kResourceExhausted. The catalogue's region has as much
  /// for itself.
  std::size_t memory_max = std::size_t{256} << 20;
  /// A log that has reached this size is followed by another.
  std::uint64_t log_bytes_max = std::uint64_t{16} << 20;
  /// When there are more logs, the server flushes the regions that keep the oldest.
  std::size_t logs_max = 8;
  /// How often the server tells the master that it lives; more often if the master's lease is
  /// short.
  Duration heartbeat_every = std::chrono::seconds(1);
  /// A server that has not heard from a master for so long ends itself. It could serve on, because
  /// its log protects the data; but nobody would move a region to it.
  Duration silence_max = std::chrono::minutes(30);
  /// A server that is asked to end closes its regions for so long; what is left is recovered.
  Duration stop_max = std::chrono::seconds(60);
  /// The first pause before a report is repeated; it doubles up to the second one.
  Duration report_pause_min = std::chrono::milliseconds(100);
  Duration report_pause_max = std::chrono::seconds(5);
  /// For how long the server remembers how an operation of the master, or of a client, has ended.
  Duration effect_retention = std::chrono::hours(1);
  Duration nonce_retention = std::chrono::minutes(30);
  /// What the nonces of clients may have in memory: about 300 bytes each, and the results of
  /// appends and increments. So 1100 writes a second go on for ever. Beyond it the server refuses
  /// writes with kResourceExhausted, but not those of the catalogue.
  std::size_t nonce_bytes_max = std::size_t{512} << 20;
  LogSink log{};  ///< Without one, warnings and errors go to stderr.
};

/// Runs a region server in this process, on real files and sockets. Prints "ready <server>
/// <address>" when it listens. SIGTERM, SIGINT or the end of its standard input ask it to end: it
/// closes its regions, tells the master, and returns. Another signal ends it at once. It dies with
/// its parent process. The return value is the exit code of the program: 0, or 1 when it could not
/// start.
///
/// A server that finds that it was taken for dead, or whose log fails, prints why and exits the
/// process at once with kFatalExit: it acknowledges nothing any more.
int run_region_server(const RegionServerOptions& options);

inline constexpr int kFatalExit = 3;

}  // namespace pv2::cluster
