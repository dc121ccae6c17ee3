// SPDX-License-Identifier: Apache-2.0
//
// ClusterWorld: a whole cluster in one process on one thread: the master, its executor, region
// servers and clients, over a network in memory, a manual clock, and files that can lose what was
// not synced. Nothing is simulated but the ground: the parts are those of the processes.

#pragma once

#include <pv2/base/clock.h>
#include <pv2/base/fields.h>
#include <pv2/base/random.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/procedures/cluster_ports.h>
#include <pv2/rpc/fault_proxy.h>
#include <pv2/rpc/memory_transport.h>
#include <pv2/store/memory_procedure_store.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/master/process_transport.h"
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
  explicit ClusterWorld(std::uint64_t given_seed = 1)
      : shared_env_(std::make_shared<CrashEnv>(given_seed)), seed(given_seed) {}
  /// Another cluster on the same network, clock and files, with its own root directory. What
  /// happens in one world happens in the other as well. `beside` lives longer.
  ClusterWorld(ClusterWorld& beside, std::string root);
  ~ClusterWorld();
  ClusterWorld(const ClusterWorld&) = delete;
  ClusterWorld& operator=(const ClusterWorld&) = delete;

  using Death = ProcessTransport::Death;

  // The processes. Files stay when a process dies. When the power goes out while one starts, there
  // is no process, and start_server() returns an empty name.
  void start_master();
  void kill_master(Death death = Death::kHeard);
  [[nodiscard]] bool has_master() const noexcept { return master_ != nullptr; }
  [[nodiscard]] cluster::Master& master() { return *master_->master; }
  /// The store of the present master's executor, to choose the commit before which it dies.
  [[nodiscard]] FaultStore& master_store() { return *master_->store; }
  /// Sets the master aside: it does nothing, and knows nothing of it, until resume_master().
  /// Another one may be started meanwhile, as if the lock of the directory had been lost; the
  /// executor of the old one writes no record any more, because the successor has its store.
  void pause_master();
  /// The masters that were set aside go on. Without a successor the last one is the master again.
  void resume_masters();
  void kill_deposed_masters();
  [[nodiscard]] std::size_t masters_aside() const noexcept { return aside_.size(); }
  ServerName start_server(const std::string& host);
  void kill_server(const ServerName& name, Death death = Death::kHeard);
  /// Asks the process to end, and waits until it has.
  void end_server(const ServerName& name);
  /// Asks it without waiting.
  void begin_end_of_server(const ServerName& name);
  /// The process does nothing, and knows nothing of it, until resume_server().
  void stop_server(const ServerName& name) { servers_.at(name)->is_stopped = true; }
  [[nodiscard]] bool is_stopped(const ServerName& name) const {
    return servers_.at(name)->is_stopped;
  }
  void resume_server(const ServerName& name) { servers_.at(name)->is_stopped = false; }
  /// Lets the process do one thing, also one that is stopped. False: it has nothing to do.
  bool step_server(const ServerName& name);
  /// Processes that run, whatever the master thinks of them.
  [[nodiscard]] std::vector<ServerName> servers() const;
  [[nodiscard]] cluster::ServerStatus status_of(const ServerName& name) const {
    return servers_.at(name)->server->status();
  }
  [[nodiscard]] std::vector<RegionInfo> regions_on(const ServerName& name) const;
  [[nodiscard]] const cluster::RegionServer& server(const ServerName& name) const {
    return *servers_.at(name)->server;
  }
  /// All processes die at once, without a word, and what was not synced is lost.
  void cut_power(CrashEnv::TornTail torn = CrashEnv::TornTail::kRandom);

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
  /// Lets one process, chosen at random, or the network do one thing. False: there was nothing to
  /// do for whoever was chosen.
  bool turn(Random& random);
  /// Takes away the processes that have ended themselves. Whether there was one.
  bool bury();
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
  const std::shared_ptr<CrashEnv> shared_env_;

 public:
  CrashEnv& env = *shared_env_;
  cluster::ClusterLayout layout{"/root"};
  cluster::FileTree files{*env.as_env(), env.directory_sync(), "world", env.everything_sync(),
                          cluster::TreeWitness{layout.root(), layout.cluster_id()}};
  std::shared_ptr<MemoryDisk> disk = std::make_shared<MemoryDisk>();
  std::optional<Status> master_end;  ///< Why the last master has ended itself.
  std::uint64_t seed = 1;
  /// What servers and masters that are started from now on get besides their names and places.
  std::function<void(cluster::RegionServerOptions&)> adjust_server;
  std::function<void(cluster::MasterOptions&)> adjust_master;
  Duration lease = std::chrono::seconds(10);
  /// Peers whose directories do not answer. While there is one, the master reads none of another
  /// cluster.
  std::set<std::string> hung_peers;
  bool hold_table_work = false;                   ///< The master's work on tables takes long.
  cluster::MakeReplicationHost make_replication;  ///< Instead of that of the processes.
  /// Where connections of the processes that start from now on go.
  ProcessTransport::Route route;

 private:
  struct MasterProcess {
    std::shared_ptr<ProcessTransport> network;
    cluster::ManualWorkQueue table_work;
    cluster::ManualWorkQueue recovery_work;
    cluster::ManualWorkQueue link_work;
    cluster::ManualWorkQueue peer_looks;
    bool is_stopped = false;
    bool is_deposed = false;      // it has a successor
    std::optional<Status> end;    // why it has ended itself
    FaultStore* store = nullptr;  // the executor's
    std::unique_ptr<cluster::Master> master;
  };
  struct ServerProcess {
    std::shared_ptr<ProcessTransport> network;
    cluster::ManualWorkQueue work;
    std::map<std::string, cluster::ManualWorkQueue> peer_looks;  // by peer
    bool is_stopped = false;
    std::optional<Status> end;  // why it has ended itself
    std::unique_ptr<cluster::RegionServer> server;
  };

  bool settle_once();
  void kill(std::unique_ptr<MasterProcess> process, Death death);
  /// Whether it did one thing.
  bool run_some(MasterProcess& process, std::size_t steps) const;
  /// Of its work on files: some of the master's, one of a server's.
  bool run_work(MasterProcess& process) const;
  bool run_work(ServerProcess& process) const;

  std::unique_ptr<MasterProcess> master_;
  std::vector<std::unique_ptr<MasterProcess>> aside_;
  std::vector<std::shared_ptr<ProcessTransport>> graves_;  ///< Of those who died without a word.
  std::map<ServerName, std::unique_ptr<ServerProcess>> servers_;
  using Worlds = std::vector<ClusterWorld*>;
  std::shared_ptr<Worlds> worlds_ = std::make_shared<Worlds>(Worlds{this});
};

}  // namespace pv2::testing::cluster_world
