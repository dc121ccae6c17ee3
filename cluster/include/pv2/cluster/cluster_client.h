// SPDX-License-Identifier: Apache-2.0
//
// ClusterClient: reads and writes tables, wherever their regions are. It finds the master, the
// servers and the regions, asks again when a region moves, is split or is recovered, and sends a
// write under one nonce until its outcome is known, so that a write is done once at most.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/ids.h>
#include <pv2/base/status.h>
#include <pv2/procedures/region.h>
#include <pv2/procedures/server.h>
#include <pv2/procedures/table.h>
#include <pv2/remote/remote_executor.h>
#include <pv2/rpc/call_outcome.h>
#include <pv2/rpc/nonce_source.h>
#include <pv2/rpc/transport.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pv2/cluster/cell.h"
#include "pv2/cluster/server_list.h"

namespace pv2::cluster {

struct ClusterClientOptions {
  /// The client asks this where the master is, each time that it connects to it or looks for
  /// regions. It may read a file: it is called on a thread of the client's own, one call at a time;
  /// on the loop of a transport without a thread. See master_of_root().
  std::function<Result<std::string>()> find_master{};
  std::shared_ptr<Transport> transport{};  ///< Has to be set.
  /// Makes the nonces of writes without one. Without it the client has a source of its own.
  std::shared_ptr<NonceSource> nonces{};
  std::shared_ptr<Clock> clock{};  ///< The transport's unless given.
  std::string token{};             ///< What the servers ask for, if they do.
  /// The time limit of the verbs that have none of their own.
  Duration timeout = std::chrono::seconds(30);
  /// One call to one server takes so long at most; then the client looks for the region again.
  Duration call_timeout = std::chrono::seconds(5);
  /// The pause before the client looks for a region again; it doubles up to the second one.
  Duration pause_min = std::chrono::milliseconds(10);
  Duration pause_max = std::chrono::milliseconds(500);
  /// For so long a write may be sent again, in this call or a later one (WriteOptions::expires_at).
  Duration write_expires_after = std::chrono::minutes(15);
  std::uint64_t seed = 0;  ///< Decides the random pauses. 0: the system chooses it.
};

/// Finds the master by the file that it writes into the directory of the cluster.
[[nodiscard]] std::function<Result<std::string>()> master_of_root(std::string root);
/// A master that never moves.
[[nodiscard]] std::function<Result<std::string>()> master_at(std::string address);

/// These go with a write. To go on with a write whose outcome is unknown, in this process or
/// another: the same mutations, the nonce and `expires_at` of that outcome, and `resumed`.
struct WriteOptions {
  Nonce nonce{};  ///< Names the write. Without one the client makes one.
  std::optional<WallTime> expires_at{};
  bool resumed = false;
  std::optional<Duration> timeout{};
  /// Of a replicated write: the ids of the clusters through which it came, the sender last.
  std::vector<std::string> origins{};
};

/// What is known of a write afterwards.
struct WriteOutcome {
  using Kind = CallOutcome::Kind;
  /// kOk: all mutations are durable. kFailed: none was made, and none will be. kUnknown: perhaps.
  Kind kind = Kind::kUnknown;
  WriteResult result{};
  Status status{};  ///< Not OK unless `kind` is kOk.
  Nonce nonce{};
  std::optional<WallTime> expires_at{};

  [[nodiscard]] bool ok() const noexcept { return kind == Kind::kOk; }
};

/// Each verb exists twice. Without a callback it blocks, and fails (kFailedPrecondition) on the
/// loop's thread and with a transport that has no thread of its own. With a callback it returns at
/// once; the callback is called once, on the loop's thread, and must not block. `timeout` is the
/// time limit of that one call, instead of ClusterClientOptions::timeout.
///
/// A table that is not there is kNotFound at once. A region that is nowhere for the moment is
/// waited for, until the time limit.
///
/// Thread-safe. The client keeps one connection for each run of a server that it has met, as long
/// as the master lists that run.
class ClusterClient {
 public:
  template <class T>
  using Done = std::function<void(T)>;

  /// kInvalidArgument names the option that is wrong. Connects when the first call is made.
  [[nodiscard]] static Result<std::unique_ptr<ClusterClient>> open(ClusterClientOptions options);
  /// Verbs that have no outcome get one: kStopping, as kUnknown if they were sent. Not on the
  /// loop's thread of a transport that has one of its own, and not within a callback.
  ~ClusterClient();
  ClusterClient(const ClusterClient&) = delete;
  ClusterClient& operator=(const ClusterClient&) = delete;

  // Rows.

  /// Makes all mutations or none. Their rows have to be in one region.
  [[nodiscard]] WriteOutcome write(const TableName& table, std::vector<Mutation> mutations,
                                   WriteOptions options = {});
  void write(const TableName& table, std::vector<Mutation> mutations, WriteOptions options,
             Done<WriteOutcome> done);
  [[nodiscard]] WriteOutcome put(const TableName& table, std::string row, std::string family,
                                 std::string qualifier, std::string value,
                                 WriteOptions options = {});
  /// Removes one cell.
  [[nodiscard]] WriteOutcome remove(const TableName& table, std::string row, std::string family,
                                    std::string qualifier, WriteOptions options = {});
  [[nodiscard]] WriteOutcome remove_row(const TableName& table, std::string row,
                                        WriteOptions options = {});
  /// The new value is `result.values[0]` of the outcome, here and in increment().
  [[nodiscard]] WriteOutcome append(const TableName& table, std::string row, std::string family,
                                    std::string qualifier, std::string value,
                                    WriteOptions options = {});
  [[nodiscard]] WriteOutcome increment(const TableName& table, std::string row, std::string family,
                                       std::string qualifier, std::int64_t amount,
                                       WriteOptions options = {});

  /// The cells of a row, none if it is not there. A row of more than 2 MiB comes in parts, each as
  /// it was at another moment.
  [[nodiscard]] Result<std::vector<Cell>> get(const TableName& table, const std::string& row,
                                              std::vector<std::string> families = {});
  void get(const TableName& table, const std::string& row, std::vector<std::string> families,
           Done<Result<std::vector<Cell>>> done, std::optional<Duration> timeout = {});
  /// Rows in order, over all regions of the range. When the page is full, rest_of() says what
  /// the next one is; without a next row the range is at its end. A page over several regions shows
  /// each region as it was at another moment.
  [[nodiscard]] Result<ScanPage> scan(const TableName& table, const Scan& scan);
  void scan(const TableName& table, const Scan& scan, Done<Result<ScanPage>> done,
            std::optional<Duration> timeout = {});

  // Regions. kNotFound: the region is not in the catalogue any more.

  Status flush(const RegionInfo& region);
  void flush(const RegionInfo& region, Done<Status> done, std::optional<Duration> timeout = {});
  Status compact(const RegionInfo& region);
  void compact(const RegionInfo& region, Done<Status> done, std::optional<Duration> timeout = {});
  /// Empty: the region has too few rows to be split.
  [[nodiscard]] Result<std::string> split_point(const RegionInfo& region);
  void split_point(const RegionInfo& region, Done<Result<std::string>> done,
                   std::optional<Duration> timeout = {});

  // The cluster.

  /// In order of their start keys, without those that were split.
  [[nodiscard]] Result<std::vector<RegionRow>> regions_of(const TableName& table);
  void regions_of(const TableName& table, Done<Result<std::vector<RegionRow>>> done);
  [[nodiscard]] Result<std::vector<TableRow>> tables();
  void tables(Done<Result<std::vector<TableRow>>> done, std::optional<Duration> timeout = {});
  [[nodiscard]] Result<std::vector<NamespaceRow>> namespaces();
  void namespaces(Done<Result<std::vector<NamespaceRow>>> done,
                  std::optional<Duration> timeout = {});
  /// What the master's descriptor cache has, in order of names: for a look at the cluster.
  [[nodiscard]] Result<std::vector<TableDescriptor>> descriptors();
  void descriptors(Done<Result<std::vector<TableDescriptor>>> done);
  [[nodiscard]] Result<ServerList> servers();
  void servers(Done<Result<ServerList>> done);
  /// What a server says of itself. kNotFound: the master knows no live server of that name.
  [[nodiscard]] Result<ServerStatus> server_status(const ServerName& server);
  void server_status(const ServerName& server, Done<Result<ServerStatus>> done);

  /// The procedures of the cluster, at whichever master there is. Valid as long as this object.
  [[nodiscard]] RemoteExecutor& executor() noexcept;

 private:
  class Core;
  ClusterClient(std::shared_ptr<Transport> transport, std::shared_ptr<Core> core);
  template <class T>
  T wait_for(const std::function<void(Done<T>)>& begin);

  std::shared_ptr<Transport> transport_;
  std::shared_ptr<Core> core_;
};

}  // namespace pv2::cluster
