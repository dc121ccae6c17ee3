// SPDX-License-Identifier: Apache-2.0
//
// ClusterWorld: a whole cluster in one process on one thread: the master, its executor, region
// servers and clients, over a network in memory, a manual clock, and files that can lose what was
// not synced. Nothing is simulated but the ground: the parts are those of the processes.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/fields.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/procedures/cluster_ports.h>
#include <pv2/rpc/fault_proxy.h>
#include <pv2/rpc/memory_transport.h>
#include <pv2/store/memory_procedure_store.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "master/master.h"
#include "pv2/testing/fault_store.h"
#include "server/region_server.h"
#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/work_queue.h"
#include "support/catch.h"
#include "support/crash_env.h"

namespace pv2::testing::cluster_world {

/// Owned by one thread.
class ClusterWorld {
 public:
  ClusterWorld() = default;
  /// Another cluster on the same network, clock and files, with its own root directory. What
  /// happens in one world happens in the other as well. `beside` lives longer.
  ClusterWorld(ClusterWorld& beside, std::string root);
  ~ClusterWorld();
  ClusterWorld(const ClusterWorld&) = delete;
  ClusterWorld& operator=(const ClusterWorld&) = delete;

  // The processes. Files stay when a process dies.
  void start_master();
  void kill_master();
  [[nodiscard]] bool has_master() const noexcept { return master_ != nullptr; }
  [[nodiscard]] cluster::Master& master() { return *master_->master; }
  ServerName start_server(const std::string& host);
  void kill_server(const ServerName& name);
  /// Asks the process to end, and waits until it has.
  void end_server(const ServerName& name);
  /// The process does nothing, and knows nothing of it, until resume_server().
  void stop_server(const ServerName& name) { servers_.at(name)->is_stopped = true; }
  void resume_server(const ServerName& name) { servers_.at(name)->is_stopped = false; }
  /// Processes that run, whatever the master thinks of them.
  [[nodiscard]] std::vector<ServerName> servers() const;
  [[nodiscard]] cluster::ServerStatus status_of(const ServerName& name) const {
    return servers_.at(name)->server->status();
  }
  [[nodiscard]] std::vector<RegionInfo> regions_on(const ServerName& name) const;

  std::unique_ptr<cluster::ClusterClient> connect(std::uint64_t seed = 1);

  /// Submits at the master that there is, and waits until it has ended.
  template <class P>
  ProcedureResult run(P procedure) {
    const ProcedureId id = submit(std::move(procedure));
    return result_of(id);
  }
  template <class P>
  ProcedureId submit(P procedure, Nonce nonce = {}) {
    std::string arguments;
    encode_fields(procedure, FieldSelection::kArguments, arguments);
    const auto submitted = answer<Result<Submitted>>([&](auto done) {
      master().executor().async().submit_encoded(P::kType, arguments, {.nonce = nonce, .owner = {}},
                                                 std::move(done));
    });
    REQUIRE(submitted.status().to_string() == "OK");
    return submitted->id;
  }
  ProcedureResult result_of(ProcedureId id);

  /// Lets everything happen that needs no time.
  void settle();
  /// Lets time pass until `done`, for half an hour at most.
  void run_until(const std::function<bool()>& done);
  void run_for(Duration time);
  /// Until the catalogue is online and no procedure is live.
  void run_until_quiet();
  /// What is wrong with the cluster, seen from outside when it is quiet.
  [[nodiscard]] std::vector<std::string> disorder();
  /// The answer of a verb that `begin(callback)` begins.
  template <class T>
  T answer(const std::function<void(std::function<void(T)>)>& begin) {
    const auto value = std::make_shared<std::optional<T>>();
    begin([value](T given) { value->emplace(std::move(given)); });
    run_until([&] { return value->has_value(); });
    return **value;
  }

  // What each verb of a client answers, waiting for it.
  cluster::WriteOutcome put(cluster::ClusterClient& client, const TableName& table,
                            const std::string& row, const std::string& value);
  /// Empty: there is no such row.
  std::string get(cluster::ClusterClient& client, const TableName& table, const std::string& row);

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<MemoryTransport> transport = std::make_shared<MemoryTransport>(clock);

 private:
  const std::shared_ptr<CrashEnv> shared_env_ = std::make_shared<CrashEnv>();

 public:
  CrashEnv& env = *shared_env_;
  cluster::FileTree files{*env.as_env(), env.directory_sync(), "world", env.everything_sync()};
  cluster::ClusterLayout layout{"/root"};
  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  std::optional<Status> master_end;  ///< Why the last master has ended itself.
  std::uint64_t seed = 1;
  /// What servers and masters that are started from now on get besides their names and places.
  std::function<void(cluster::RegionServerOptions&)> adjust_server;
  std::function<void(cluster::MasterOptions&)> adjust_master;

 private:
  struct MasterProcess {
    cluster::ManualWorkQueue work;
    FaultStore* store = nullptr;  // the executor's
    std::unique_ptr<cluster::Master> master;
  };
  struct ServerProcess {
    cluster::ManualWorkQueue work;
    bool is_stopped = false;
    std::optional<Status> end;  // why it has ended itself
    std::unique_ptr<cluster::RegionServer> server;
  };

  bool settle_once();

  std::unique_ptr<MasterProcess> master_;
  std::map<ServerName, std::unique_ptr<ServerProcess>> servers_;
  using Worlds = std::vector<ClusterWorld*>;
  std::shared_ptr<Worlds> worlds_ = std::make_shared<Worlds>(Worlds{this});
};

}  // namespace pv2::testing::cluster_world
