// SPDX-License-Identifier: Apache-2.0
//
// ServerWorld: region servers, a client and a master that does what the test says, in one process
// on one thread: a network in memory, a manual clock, files that can lose what was not synced. The
// master is the test's own: it dispatches, takes reports, and keeps the catalogue in a region on
// one of the servers.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/fields.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/rpc/fault_proxy.h>
#include <pv2/rpc/memory_transport.h>
#include <pv2/rpc/rpc_client.h>
#include <pv2/rpc/rpc_server.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/region_server.h"
#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/work_queue.h"
#include "support/catch.h"
#include "support/crash_env.h"
#include "wire/region_messages.h"
#include "wire/server_messages.h"

namespace pv2::testing::server_world {

/// One process of a region server.
struct ServerProcess {
  explicit ServerProcess(const cluster::FileTree& tree) : files(tree) {}
  const cluster::FileTree& files;
  cluster::ManualWorkQueue work;
  cluster::ManualWorkQueue calls;  ///< Of clients.
  cluster::ManualWorkQueue meta;   ///< What the catalogue's region has for itself, but for its log.
  cluster::ManualWorkQueue meta_log;
  bool holds_calls = false;  ///< They wait.
  bool holds_meta_log = false;
  bool holds_work = false;  ///< The rest of the work waits.
  std::unique_ptr<cluster::RegionServer> server;
  std::optional<Status> end;            ///< Why the server has ended itself.
  std::function<Status()> check_lease;  ///< What replication asks before it ships.
  std::unique_ptr<FaultProxy> proxy;    ///< Clients come through it.
  std::unique_ptr<RpcClient> link;      ///< The master's.
};

/// Owned by one thread.
class ServerWorld {
 public:
  using Verdict = cluster::ReportReply::Verdict;

  ServerWorld();
  ~ServerWorld();

  // The processes.
  ServerName start(const std::string& host,
                   std::function<void(cluster::RegionServerOptions&)> tune = {});
  /// The process dies. Its files stay.
  void kill(const ServerName& name);
  [[nodiscard]] ServerProcess& process(const ServerName& name);
  [[nodiscard]] std::vector<ServerName> live() const;
  void start_master(std::uint64_t epoch);
  void stop_master() { master_.reset(); }

  // What the master does. Each waits until it is done.
  cluster::DispatchReply dispatch(const ServerName& to, std::vector<RemoteOperation> operations,
                                  std::optional<std::uint64_t> epoch = {});
  /// As dispatch(), with a failure as it comes.
  CallOutcome try_dispatch(const ServerName& to, std::vector<RemoteOperation> operations,
                           std::uint64_t epoch);
  [[nodiscard]] RemoteOperation order(RemoteKind kind, const ServerName& server,
                                      const RegionInfo& region = {});
  RemoteReport report_of(const RemoteOperation& operation);
  void make_table(const TableName& table, const std::vector<std::string>& families,
                  const std::vector<RegionInfo>& regions);
  /// Opens the region and writes its row; the catalogue's region has its row in the master.
  void open(const RegionInfo& region, const ServerName& server);
  void close(const RegionInfo& region);
  void move(const RegionInfo& region, const ServerName& to);
  /// Replaces a region by two, which open on the same server.
  std::vector<RegionInfo> split(const RegionInfo& region, const std::string& row);
  /// Fences a server, has its logs split by `worker`, and leaves its regions without a home.
  void recover(const ServerName& dead, const ServerName& worker);
  [[nodiscard]] std::vector<RegionInfo> regions_on(const ServerName& server) const;

  // What a client does.
  std::unique_ptr<cluster::ClusterClient> connect(std::uint64_t seed = 1);
  /// A call of a region's method at a server, without a client's search.
  CallOutcome call(const ServerName& to, std::string_view method, std::string body,
                   CallOptions options);

  template <class T>
  static std::string encoded(T message) {
    std::string body;
    encode_fields(message, FieldSelection::kAll, body);
    return body;
  }

  /// Lets everything happen that needs no time.
  void settle();
  /// Lets time pass until `done`, for some minutes at most.
  void run_until(const std::function<bool()>& done);
  void run_for(Duration time);
  /// The answer of a verb that `begin(callback)` begins.
  template <class T>
  T answer(const std::function<void(std::function<void(T)>)>& begin) {
    const auto value = std::make_shared<std::optional<T>>();
    begin([value](T given) { value->emplace(std::move(given)); });
    run_until([&] { return value->has_value(); });
    return **value;
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryTransport> transport = std::make_shared<MemoryTransport>(clock);
  CrashEnv env;
  cluster::ClusterLayout layout{"root"};
  cluster::FileTree files{*env.as_env(),
                          env.directory_sync(),
                          "master",
                          {},
                          cluster::TreeWitness{layout.root(), layout.cluster_id()}};
  /// What the proxies of clients do. To be set before servers start.
  std::shared_ptr<FaultPlan> plan;
  std::uint64_t epoch = 1;
  std::map<std::string, RegionRow> rows;  ///< By region id.
  std::set<ServerName> dead;
  /// Every report that has come, with repeats.
  std::vector<RemoteReport> reports;
  std::uint64_t reported_epoch = 0;  ///< That the last report was sent with.
  /// What the master says to a report. kTaken unless the test sets it.
  std::function<Verdict(const RemoteReport&)> verdict;
  /// The master gives no answer to these reports.
  std::function<bool(const RemoteReport&)> swallows;
  std::size_t heartbeats = 0;
  Duration lease = std::chrono::seconds(10);
  std::set<ServerName> left;  ///< They have said that they leave.

 private:
  void write_row(const RegionRow& row);
  cluster::ServerList list_servers();
  void heartbeat(IncomingCall call);
  void report(IncomingCall call);
  std::map<ServerName, std::unique_ptr<ServerProcess>> processes_;
  std::unique_ptr<RpcServer> master_;
  std::map<ServerName, std::string> registered_;
  std::uint64_t next_procedure_ = 1;
  std::uint64_t next_order_ = 1;
  NonceSource nonces_;
};

/// The one region of a table.
[[nodiscard]] RegionInfo whole_table(const TableName& table, const std::string& id);

}  // namespace pv2::testing::server_world
