// SPDX-License-Identifier: Apache-2.0
//
// MemoryCluster: every call does its work under one mutex when it is made; only the answer may come
// later. So a crash of the executor loses the answer, as with a real cluster.

#include "pv2/procedures/memory_cluster.h"

#include <pv2/base/fields.h>
#include <pv2/base/mutex.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/inspection.h>
#include <pv2/engine/procedure_executor.h>

#include <array>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "memory_world.h"
#include "pv2/procedures/catalogue_limits.h"

namespace pv2 {
namespace {

// As many as in HBase (hbase.regionserver.wal.max.splitters).
constexpr std::size_t kSplittersPerServer = 2;

Status lost() { return {StatusCode::kUnavailable, "the script says that this call fails"}; }

/// What a file system says to a name that it does not take.
Status no_such_file(const Status& bad) {
  return {StatusCode::kIoError, "no file can have this name: " + std::string(bad.message())};
}

bool happens(std::optional<ClusterFault> fault) {
  return !fault || fault == ClusterFault::kLoseReply || fault == ClusterFault::kRepeatReport;
}

ClusterCall call_of(RemoteKind kind) {
  switch (kind) {
    case RemoteKind::kOpenRegion:
      return ClusterCall::kOpenRegion;
    case RemoteKind::kCloseRegion:
      return ClusterCall::kCloseRegion;
    case RemoteKind::kSplitLog:
      return ClusterCall::kSplitLog;
    case RemoteKind::kRefreshPeer:
      return ClusterCall::kRefreshPeer;
    case RemoteKind::kClaimQueues:
      break;
  }
  return ClusterCall::kClaimQueues;
}

/// Whether the write is about rows that are kept outside the catalogue's table.
bool is_local(const CatalogueWrite& write) {
  return !write.servers.empty() ||
         (!write.regions.empty() && is_meta(write.regions.front().region.table));
}

}  // namespace

class MemoryCluster::Impl final : public Catalogue,
                                  public TableFiles,
                                  public ServerCalls,
                                  public ServerLogs,
                                  public PeerStorage,
                                  public DescriptorCache,
                                  public std::enable_shared_from_this<MemoryCluster::Impl> {
 public:
  Impl(Delivery delivery, FirstState first) : delivery_(delivery) {
    if (first == FirstState::kNothing) return;
    MutexLock lock(cluster_mutex_);
    for (const std::string_view name : {kDefaultNamespace, kSystemNamespace}) {
      world_.catalogue.load(CatalogueState::Kept<NamespaceRow>{{std::string(name)}, ""});
      world_.namespace_directories.emplace(name);
    }
  }

  // Catalogue

  void read_namespace(std::string name,
                      Completion<Result<std::optional<NamespaceRow>>> done) override {
    ask_catalogue(ClusterCall::kReadNamespace, std::move(done),
                  [=](World& world) { return world.catalogue.name_space(name); });
  }
  void tables_of(std::string name_space, Completion<Result<std::vector<TableName>>> done) override {
    ask_catalogue(ClusterCall::kTablesOf, std::move(done),
                  [=](World& world) { return world.catalogue.tables_of(name_space); });
  }
  void read_table(TableName name, Completion<Result<std::optional<TableRow>>> done) override {
    ask_catalogue(ClusterCall::kReadTable, std::move(done),
                  [=](World& world) { return world.catalogue.table(name); });
  }
  void regions_of(TableName table, Completion<Result<std::vector<RegionRow>>> done) override {
    ask_catalogue(ClusterCall::kRegionsOf, std::move(done),
                  [=](World& world) { return world.catalogue.regions_of(table); });
  }
  void read_region(std::string id, Completion<Result<std::optional<RegionRow>>> done) override {
    const auto read = [=](World& world) { return world.catalogue.region(id); };
    if (id == meta_region().id) return query(ClusterCall::kReadRegion, std::move(done), read);
    ask_catalogue(ClusterCall::kReadRegion, std::move(done), read);
  }
  void regions_on(ServerName server, RegionIds ids,
                  Completion<Result<std::vector<RegionRow>>> done) override {
    ask_catalogue(ClusterCall::kRegionsOn, std::move(done),
                  [=](World& world) { return world.catalogue.regions_on(server, ids); });
  }
  void read_server(ServerName name, Completion<Result<ServerRow>> done) override {
    query(ClusterCall::kReadServer, std::move(done),
          [=](World& world) { return world.catalogue.server(name); });
  }
  void write(CatalogueWrite write, Completion<Result<Applied>> done) override {
    const bool local = is_local(write);
    const auto apply = [write = std::move(write), local](World& world) -> Result<Applied> {
      if (Status bad = local ? Status() : check_size(write); !bad.ok()) return bad;
      Result<Applied> applied = world.catalogue.apply(write);
      if (applied.ok() && *applied == Applied::kNow) {
        ++world.effects["catalogue " + write.effect_key];
      }
      return applied;
    };
    if (!local) return ask_catalogue(ClusterCall::kWrite, std::move(done), apply);
    query(ClusterCall::kWrite, std::move(done), apply);
    look_again();
  }

  // TableFiles

  void make_namespace(std::string name, std::string /*effect_key*/,
                      Completion<Status> done) override {
    act(ClusterCall::kMakeNamespace, std::move(done), [&](World& world, bool half) {
      if (!half) world.namespace_directories.insert(name);
      return Status();
    });
  }
  void remove_namespace(std::string name, std::string /*effect_key*/,
                        Completion<Status> done) override {
    act(ClusterCall::kRemoveNamespace, std::move(done), [&](World& world, bool half) {
      for (const auto& [table, directory] : world.tables) {
        if (table.name_space == name) {
          return Status(
              StatusCode::kFailedPrecondition,
              "the directory of namespace " + name + " has table " + to_string(table) + " in it");
        }
      }
      if (!half) world.namespace_directories.erase(name);
      return Status();
    });
  }
  void write_layout(TableDescriptor descriptor, std::vector<RegionInfo> regions,
                    std::string effect_key, Completion<Status> done) override {
    act(ClusterCall::kWriteLayout, std::move(done), [&](World& world, bool half) {
      world.lay_out(descriptor, regions, half, effect_key);
      return Status();
    });
  }
  void read_descriptor(TableName table,
                       Completion<Result<std::optional<TableDescriptor>>> done) override {
    using Answer = Result<std::optional<TableDescriptor>>;
    query(ClusterCall::kReadDescriptor, std::move(done), [=](World& world) -> Answer {
      if (Status bad = check_table_name(table); !bad.ok()) return no_such_file(bad);
      const auto found = world.tables.find(table);
      return found == world.tables.end() ? std::nullopt : found->second.descriptor;
    });
  }
  void write_descriptor(TableDescriptor descriptor, std::string effect_key,
                        Completion<Status> done) override {
    act(ClusterCall::kWriteDescriptor, std::move(done), [&](World& world, bool half) {
      std::optional<TableDescriptor>& kept = world.tables[descriptor.name].descriptor;
      if (!half && kept != descriptor) {
        kept = descriptor;
        ++world.effects["descriptor " + effect_key];
      }
      return Status();
    });
  }
  void archive_table(TableName table, std::string /*effect_key*/,
                     Completion<Status> done) override {
    act(ClusterCall::kArchiveTable, std::move(done), [&](World& world, bool half) {
      world.archive_table(table, half);
      return Status();
    });
  }
  void holds_data(TableName table, Completion<Result<bool>> done) override {
    query(ClusterCall::kHoldsData, std::move(done), [=](World& world) {
      const auto found = world.tables.find(table);
      if (found == world.tables.end()) return false;
      for (const auto& [id, region] : found->second.regions) {
        if (!region.rows.empty() || !region.recovered.empty()) return true;
      }
      return false;
    });
  }
  void make_references(std::vector<RegionInfo> parents, std::vector<RegionInfo> children,
                       std::string effect_key, Completion<Status> done) override {
    act(ClusterCall::kMakeReferences, std::move(done), [&](World& world, bool half) {
      world.make_references(parents, children, half, effect_key);
      return Status();
    });
  }
  void carry_sequences(std::vector<RegionInfo> parents, std::vector<RegionInfo> children,
                       std::string /*effect_key*/, Completion<Status> done) override {
    act(ClusterCall::kCarrySequences, std::move(done), [&](World& world, bool half) {
      world.carry_sequences(parents, children, half);
      return Status();
    });
  }
  void remove_regions(std::vector<RegionInfo> regions, std::string /*effect_key*/,
                      Completion<Status> done) override {
    act(ClusterCall::kRemoveRegions, std::move(done), [&](World& world, bool half) {
      world.remove_regions(regions, half);
      return Status();
    });
  }
  void has_recovered_edits(std::vector<RegionInfo> regions,
                           Completion<Result<bool>> done) override {
    query(ClusterCall::kHasRecoveredEdits, std::move(done),
          [=](World& world) { return world.has_recovered_edits(regions); });
  }

  // ServerCalls

  void dispatch(RemoteOperation operation, Completion<DispatchOutcome> done) override {
    DispatchOutcome answer;
    {
      MutexLock lock(cluster_mutex_);
      World::Server& server = world_.servers[operation.server];
      const std::optional<ClusterFault> fault = take_fault(call_of(operation.kind));
      if (!server.alive || fault == ClusterFault::kFail) {
        answer = {DispatchOutcome::Kind::kNotSent, "connection refused"};
      } else if (fault == ClusterFault::kLoseRequest) {
        answer = {DispatchOutcome::Kind::kUnknown, "the request was lost"};
      } else {
        answer = execute(server, operation, fault);
        if (fault == ClusterFault::kLoseReply) {
          answer = {DispatchOutcome::Kind::kUnknown, "the reply was lost"};
        }
      }
    }
    deliver(std::move(done), std::move(answer));
  }
  void live_servers(Completion<Result<std::vector<ServerName>>> done) override {
    query(ClusterCall::kLiveServers, std::move(done), [](World& world) {
      std::vector<ServerName> names;
      for (const auto& [name, server] : world.servers) {
        if (server.registered && !is_dead(world.catalogue.server(name).state)) {
          names.push_back(name);
        }
      }
      return names;
    });
  }
  void when_crashed(ServerName server, Completion<Status> done) override {
    await(ClusterCall::kWhenCrashed, std::move(done),
          [=](const World& world) { return is_dead(world.catalogue.server(server).state); });
  }
  void when_recovered(ServerName server, LogKind kind, Completion<Status> done) override {
    await(ClusterCall::kWhenRecovered, std::move(done), [=](const World& world) {
      const ServerRow row = world.catalogue.server(server);
      return is_recovered(row.state) || (kind == LogKind::kMeta && row.meta_recovered);
    });
  }
  void acquire_splitter(ProcedureId procedure, ServerName preferred,
                        Completion<Result<ServerName>> done) override {
    {
      MutexLock lock(cluster_mutex_);
      ++calls_[static_cast<std::size_t>(ClusterCall::kAcquireSplitter)];
      auto attempt = [this, procedure, preferred, done = std::move(done)]()
                         PV2_REQUIRES(cluster_mutex_) -> std::optional<Answer> {
        const auto found = find_splitter(procedure, preferred);
        if (!found) return std::nullopt;
        return [done, found] { done(Result<ServerName>(*found)); };
      };
      waiting_.push_back({std::move(attempt)});
    }
    look_again();
  }
  void release_splitter(ProcedureId procedure) override {
    {
      MutexLock lock(cluster_mutex_);
      splitters_.erase(procedure);
    }
    look_again();
  }

  // ServerLogs

  void fence(ServerName name, Completion<Status> done) override {
    act(ClusterCall::kFence, std::move(done), [&](World& world, bool /*half*/) {
      if (Status bad = check_server_name(name); !bad.ok()) return no_such_file(bad);
      world.kill(world.servers[name]);
      world.servers[name].registered = false;
      return Status();
    });
    look_again();
  }
  void logs_of(ServerName name, LogKind kind,
               Completion<Result<std::vector<std::string>>> done) override {
    query(ClusterCall::kLogsOf, std::move(done), [=](World& world) {
      std::vector<std::string> names;
      for (const World::Log& log : world.servers[name].logs[kind]) {
        // The size may grow while somebody looks, as that of a log that a zombie appends to.
        names.push_back(log.name + '@' + std::to_string(++world.looks));
      }
      return names;
    });
  }
  void archive(ServerName name, std::string log, Completion<Status> done) override {
    act(ClusterCall::kArchiveLog, std::move(done), [&](World& world, bool /*half*/) {
      for (auto& [kind, logs] : world.servers[name].logs) {
        std::erase_if(logs, [&](const World::Log& kept) { return kept.name == file_of(log); });
      }
      return Status();
    });
  }
  void remove(ServerName name, Completion<Status> done) override {
    act(ClusterCall::kRemoveLogs, std::move(done), [&](World& world, bool /*half*/) {
      world.servers[name].logs.clear();
      return Status();
    });
  }

  // PeerStorage

  void read_peer(std::string id, Completion<Result<std::optional<PeerRow>>> done) override {
    using Answer = Result<std::optional<PeerRow>>;
    query(ClusterCall::kReadPeer, std::move(done), [=](World& world) -> Answer {
      if (Status bad = check_name("peer", id, false); !bad.ok()) return no_such_file(bad);
      const auto found = world.peers.find(id);
      if (world.damaged_peers.contains(id)) {
        return Status(StatusCode::kCorruption, "the configuration of peer " + id + " is damaged");
      }
      return found == world.peers.end() ? std::nullopt : std::optional(found->second);
    });
  }
  void list_peers(Completion<Result<std::vector<std::string>>> done) override {
    query(ClusterCall::kListPeers, std::move(done), [](World& world) {
      std::vector<std::string> ids;
      for (const auto& [id, row] : world.peers) ids.push_back(id);
      return ids;
    });
  }
  void write_peer(PeerRow peer, std::string effect_key, Completion<Status> done) override {
    act(ClusterCall::kWritePeer, std::move(done), [&](World& world, bool half) {
      const auto kept = world.peers.find(peer.id);
      if (half || (kept != world.peers.end() && kept->second == peer)) return Status();
      world.peers[peer.id] = peer;
      ++world.effects["peer " + effect_key];
      return Status();
    });
  }
  void remove_peer(std::string id, std::string /*effect_key*/, Completion<Status> done) override {
    act(ClusterCall::kRemovePeer, std::move(done), [&](World& world, bool half) {
      if (half) return Status();
      world.peers.erase(id);
      world.damaged_peers.erase(id);
      return Status();
    });
  }
  void is_own_cluster(std::string root, Completion<Result<bool>> done) override {
    query(ClusterCall::kIsOwnCluster, std::move(done),
          [=](World& /*world*/) { return root == MemoryCluster::kRoot; });
  }
  void has_queues(std::string id, Completion<Result<bool>> done) override {
    query(ClusterCall::kHasQueues, std::move(done), [=](World& world) {
      const auto first = world.queues.lower_bound({id, ServerName{}});
      return first != world.queues.end() && first->first == id;
    });
  }
  void remove_queues(std::string id, std::string /*effect_key*/, Completion<Status> done) override {
    act(ClusterCall::kRemoveQueues, std::move(done), [&](World& world, bool half) {
      if (!half) std::erase_if(world.queues, [&](const auto& queue) { return queue.first == id; });
      return Status();
    });
  }

  // DescriptorCache

  void refresh(TableName table, Completion<Status> done) override {
    act(ClusterCall::kRefresh, std::move(done), [&](World& world, bool half) {
      const auto found = world.tables.find(table);
      if (half) return Status();
      world.cached.erase(table);
      if (found != world.tables.end() && found->second.descriptor) {
        world.cached[table] = *found->second.descriptor;
      }
      return Status();
    });
  }

  // What tests do

  ServerName add_server(std::string_view host) {
    ServerName name;
    {
      MutexLock lock(cluster_mutex_);
      name = world_.add_server(host);
    }
    look_again();
    return name;
  }
  void kill_server(const ServerName& name) {
    MutexLock lock(cluster_mutex_);
    world_.kill(world_.servers[name]);
  }
  void host_catalogue_on(const ServerName& name) {
    MutexLock lock(cluster_mutex_);
    world_.tables[meta_table()] = {TableDescriptor{meta_table(), {"info"}},
                                   {{meta_region().id, {meta_region(), {}, {}, 1}}}};
    world_.servers[name].open[meta_region().id] = {meta_region(), 1, "", true, {}};
    world_.servers[name].logs[LogKind::kMeta] = {{"m1", {}}};
    world_.catalogue.load(
        CatalogueState::Kept<RegionRow>{{meta_region(), RegionState::kOpen, name, 1}, ""});
  }
  bool write_row(const TableName& table, const std::string& row) {
    MutexLock lock(cluster_mutex_);
    return world_.write_row(table, row);
  }
  std::set<std::string> readable_rows(const TableName& table) const {
    MutexLock lock(cluster_mutex_);
    return world_.readable_rows(table);
  }
  void leave_edit(const RegionInfo& region, const std::string& row) {
    MutexLock lock(cluster_mutex_);
    world_.tables[region.table].regions.at(region.id).recovered.insert(row);
  }
  void damage_peer(const std::string& peer) {
    MutexLock lock(cluster_mutex_);
    world_.damaged_peers.insert(peer);
  }
  void begin_queue(const ServerName& server, const std::string& peer) {
    MutexLock lock(cluster_mutex_);
    world_.queues.emplace(peer, server);
  }
  void forget_effects() {
    MutexLock lock(cluster_mutex_);
    world_.forget_effects();
  }
  void fail_next(ClusterCall call, ClusterFault fault, unsigned times) {
    MutexLock lock(cluster_mutex_);
    auto& script = faults_[static_cast<std::size_t>(call)];
    script.insert(script.end(), times, fault);
  }
  std::size_t calls(ClusterCall call) const {
    MutexLock lock(cluster_mutex_);
    return calls_[static_cast<std::size_t>(call)];
  }

  std::size_t undelivered() const {
    MutexLock lock(cluster_mutex_);
    return answers_.size();
  }
  bool deliver(std::size_t which) {
    std::function<void()> answer;
    {
      MutexLock lock(cluster_mutex_);
      if (which >= answers_.size()) return false;
      const auto at = answers_.begin() + static_cast<std::ptrdiff_t>(which);
      answer = std::move(*at);
      answers_.erase(at);
    }
    answer();
    return true;
  }

  std::size_t unsent_reports(const ProcedureExecutor& executor) const {
    MutexLock lock(cluster_mutex_);
    std::size_t count = 0;
    for (const Report& report : reports_) count += report.sent_to != &executor ? 1 : 0;
    return count;
  }
  /// A procedure that an operator has ended gives its place as a splitter back to nobody.
  std::size_t forget_ended_splitters(const ProcedureExecutor& executor) {
    std::vector<ProcedureId> ended;
    {
      MutexLock lock(cluster_mutex_);
      for (const auto& [procedure, name] : splitters_) ended.push_back(procedure);
    }
    std::erase_if(ended, [&](ProcedureId procedure) {
      return executor.inspect().describe(procedure).status().code() != StatusCode::kNotFound;
    });
    if (ended.empty()) return 0;
    {
      MutexLock lock(cluster_mutex_);
      for (const ProcedureId procedure : ended) splitters_.erase(procedure);
    }
    look_again();
    return ended.size();
  }
  void deliver_report(ProcedureExecutor& executor, std::size_t which) {
    std::optional<Report> next;
    {
      MutexLock lock(cluster_mutex_);
      for (auto at = reports_.begin(); at != reports_.end(); ++at) {
        if (at->sent_to == &executor || which-- != 0) continue;
        if (is_dead(world_.catalogue.server(at->report.server).state)) {
          reports_.erase(at);  // "you are dead"
          return;
        }
        at->sent_to = &executor;
        next = *at;
        break;
      }
    }
    if (!next) return;
    std::string payload;
    encode_fields(next->report, FieldSelection::kAll, payload);
    executor.async().signal(next->procedure, std::string(kReportSignal), std::move(payload),
                            [self = shared_from_this(), number = next->number](Status status) {
                              self->reported(number, status);
                            });
  }
  ClusterSnapshot snapshot() const {
    MutexLock lock(cluster_mutex_);
    ClusterSnapshot snapshot;
    world_.describe(snapshot);
    return snapshot;
  }

 private:
  using World = MemoryWorld;
  struct Report {
    std::uint64_t number = 0;
    ProcedureId procedure;
    RemoteReport report;
    const ProcedureExecutor* sent_to = nullptr;  // in this life; compared, never used
  };
  using Answer = std::function<void()>;
  /// Something that may be able to answer when the world has changed.
  struct Waiting {
    /// Called under the mutex. Nothing: not yet. An empty answer: nobody waits for it any more.
    std::function<std::optional<Answer>()> attempt;
  };

  std::optional<ClusterFault> take_fault(ClusterCall call) PV2_REQUIRES(cluster_mutex_) {
    ++calls_[static_cast<std::size_t>(call)];
    auto& script = faults_[static_cast<std::size_t>(call)];
    if (script.empty()) return std::nullopt;
    const ClusterFault fault = script.front();
    script.pop_front();
    return fault;
  }

  /// A call that answers with what `work` returns.
  template <class T, class Work>
  void query(ClusterCall call, Completion<Result<T>> done, const Work& work) {
    std::optional<Result<T>> answer;
    {
      MutexLock lock(cluster_mutex_);
      const std::optional<ClusterFault> fault = take_fault(call);
      if (happens(fault)) answer.emplace(work(world_));
      if (fault) answer.emplace(lost());
    }
    deliver(std::move(done), std::move(*answer));
  }

  /// A query that waits until the catalogue is online.
  template <class T, class Work>
  void ask_catalogue(ClusterCall call, Completion<Result<T>> done, Work work) {
    {
      MutexLock lock(cluster_mutex_);
      if (!world_.catalogue_is_online()) {
        auto attempt = [this, call, done = std::move(done), work = std::move(work)]()
                           PV2_REQUIRES(cluster_mutex_) -> std::optional<Answer> {
          if (!world_.catalogue_is_online()) return std::nullopt;
          return [this, call, done, work] { query(call, done, work); };
        };
        waiting_.push_back({std::move(attempt)});
        return;
      }
    }
    query(call, std::move(done), work);
  }

  /// A call that changes something and answers with a status.
  template <class Work>
  void act(ClusterCall call, Completion<Status> done, const Work& work) {
    Status answer;
    {
      MutexLock lock(cluster_mutex_);
      const std::optional<ClusterFault> fault = take_fault(call);
      const bool half = fault == ClusterFault::kHalf;
      if (happens(fault) || half) answer = work(world_, half);
      if (fault) answer = lost();
    }
    deliver(std::move(done), std::move(answer));
  }

  /// A call that answers when something has become true.
  template <class Condition>
  void await(ClusterCall call, Completion<Status> done, Condition condition) {
    {
      MutexLock lock(cluster_mutex_);
      ++calls_[static_cast<std::size_t>(call)];
      auto attempt = [this, done = std::move(done), condition = std::move(condition)]()
                         PV2_REQUIRES(cluster_mutex_) -> std::optional<Answer> {
        if (!done.is_awaited()) return Answer();
        if (!condition(world_)) return std::nullopt;
        return [done] { done(Status()); };
      };
      waiting_.push_back({std::move(attempt)});
    }
    look_again();
  }

  /// The world has changed: whoever waited for that is answered.
  void look_again() PV2_EXCLUDES(cluster_mutex_) {
    std::list<Waiting> over;  // destroyed without the mutex
    std::vector<Answer> answers;
    {
      // All in one section: a change that comes between a look and the next is seen by the next.
      MutexLock lock(cluster_mutex_);
      for (auto at = waiting_.begin(); at != waiting_.end();) {
        const auto waiting = at++;
        std::optional<Answer> answer = waiting->attempt();
        if (!answer) continue;
        if (*answer) answers.push_back(std::move(*answer));
        over.splice(over.end(), waiting_, waiting);
      }
    }
    for (Answer& answer : answers) hand_over(std::move(answer));
  }

  std::optional<ServerName> find_splitter(ProcedureId procedure, const ServerName& preferred)
      PV2_REQUIRES(cluster_mutex_) {
    const auto lives = [&](const ServerName& name) PV2_REQUIRES(cluster_mutex_) {
      const auto server = world_.servers.find(name);
      return server != world_.servers.end() && server->second.registered &&
             !is_dead(world_.catalogue.server(name).state);
    };
    if (const auto has = splitters_.find(procedure); has != splitters_.end()) {
      if (lives(has->second)) return has->second;
      splitters_.erase(has);
    }
    std::map<ServerName, std::size_t> busy;
    for (const auto& [other, name] : splitters_) ++busy[name];
    std::optional<ServerName> best;
    if (!preferred.empty() && lives(preferred)) best = preferred;
    for (const auto& [name, server] : world_.servers) {
      if (best == preferred && best) break;
      if (!lives(name) || busy[name] >= kSplittersPerServer) continue;
      if (!best || busy[name] < busy[*best]) best = name;
    }
    if (best) splitters_[procedure] = *best;
    return best;
  }

  DispatchOutcome execute(World::Server& server, const RemoteOperation& operation,
                          std::optional<ClusterFault> fault) PV2_REQUIRES(cluster_mutex_) {
    const World::Mood mood = fault == ClusterFault::kRefuse          ? World::Mood::kRefuses
                             : fault == ClusterFault::kReportFailure ? World::Mood::kFails
                                                                     : World::Mood::kWilling;
    const bool is_new = !server.answered.contains(operation.effect_key);
    const DispatchOutcome answer = world_.execute(server, operation, mood);
    if (is_new && answer.kind == DispatchOutcome::Kind::kDone) {
      const RemoteReport& report = server.reported.at(operation.effect_key);
      const int times = fault == ClusterFault::kRepeatReport ? 2 : 1;
      for (int i = 0; i < times; ++i) {
        reports_.push_back({++last_report_, operation.procedure, report, nullptr});
      }
    }
    return answer;
  }

  /// An executor has answered the signal of a report.
  void reported(std::uint64_t number, const Status& status) PV2_EXCLUDES(cluster_mutex_) {
    {
      MutexLock lock(cluster_mutex_);
      for (auto at = reports_.begin(); at != reports_.end(); ++at) {
        if (at->number != number) continue;
        const StatusCode code = status.code();
        const bool ended = code == StatusCode::kFailedPrecondition ||
                           code == StatusCode::kNotFound || code == StatusCode::kExpired;
        if (status.ok() || ended) {
          world_.accept(world_.servers[at->report.server], at->report);
          reports_.erase(at);
        } else {
          at->sent_to = nullptr;
        }
        break;
      }
    }
    look_again();
  }

  template <class T>
  void deliver(Completion<T> done, T value) PV2_EXCLUDES(cluster_mutex_) {
    hand_over(
        [done = std::move(done), value = std::move(value)]() mutable { done(std::move(value)); });
  }
  void hand_over(std::function<void()> answer) PV2_EXCLUDES(cluster_mutex_) {
    if (delivery_ == Delivery::kInline) return answer();
    MutexLock lock(cluster_mutex_);
    answers_.push_back(std::move(answer));
  }

  static constexpr std::size_t kCalls = static_cast<std::size_t>(ClusterCall::kRefresh) + 1;

  const Delivery delivery_;
  mutable Mutex cluster_mutex_;
  World world_ PV2_GUARDED_BY(cluster_mutex_);
  std::array<std::deque<ClusterFault>, kCalls> faults_ PV2_GUARDED_BY(cluster_mutex_);
  std::array<std::size_t, kCalls> calls_ PV2_GUARDED_BY(cluster_mutex_){};
  std::deque<std::function<void()>> answers_ PV2_GUARDED_BY(cluster_mutex_);
  std::list<Waiting> waiting_ PV2_GUARDED_BY(cluster_mutex_);
  std::deque<Report> reports_ PV2_GUARDED_BY(cluster_mutex_);
  std::uint64_t last_report_ PV2_GUARDED_BY(cluster_mutex_) = 0;
  std::map<ProcedureId, ServerName> splitters_ PV2_GUARDED_BY(cluster_mutex_);

 public:
  ClusterPorts ports{*this, *this, *this, *this, *this, *this};
};

MemoryCluster::MemoryCluster(Delivery delivery, FirstState first)
    : impl_(std::make_shared<Impl>(delivery, first)) {}
MemoryCluster::~MemoryCluster() = default;
ClusterPorts& MemoryCluster::ports() { return impl_->ports; }
ServerName MemoryCluster::add_server(std::string_view host) { return impl_->add_server(host); }
void MemoryCluster::kill_server(const ServerName& server) { impl_->kill_server(server); }
void MemoryCluster::host_catalogue_on(const ServerName& server) {
  impl_->host_catalogue_on(server);
}
bool MemoryCluster::write_row(const TableName& table, const std::string& row) {
  return impl_->write_row(table, row);
}
std::set<std::string> MemoryCluster::readable_rows(const TableName& table) const {
  return impl_->readable_rows(table);
}
void MemoryCluster::leave_edit(const RegionInfo& region, const std::string& row) {
  impl_->leave_edit(region, row);
}
void MemoryCluster::damage_peer(const std::string& peer) { impl_->damage_peer(peer); }
void MemoryCluster::begin_queue(const ServerName& server, const std::string& peer) {
  impl_->begin_queue(server, peer);
}
void MemoryCluster::forget_effects() { impl_->forget_effects(); }
void MemoryCluster::fail_next(ClusterCall call, ClusterFault fault, unsigned times) {
  impl_->fail_next(call, fault, times);
}
std::size_t MemoryCluster::calls(ClusterCall call) const { return impl_->calls(call); }
bool MemoryCluster::deliver_one() { return impl_->deliver(0); }
std::size_t MemoryCluster::deliver_all() {
  std::size_t delivered = 0;
  while (deliver_one()) ++delivered;
  return delivered;
}
std::size_t MemoryCluster::undelivered() const { return impl_->undelivered(); }
void MemoryCluster::deliver(std::size_t which) { impl_->deliver(which); }
std::size_t MemoryCluster::deliver_reports(ProcedureExecutor& executor) {
  std::size_t sent = impl_->forget_ended_splitters(executor);
  for (; impl_->unsent_reports(executor) > 0; ++sent) impl_->deliver_report(executor, 0);
  return sent;
}
std::size_t MemoryCluster::unsent_reports(const ProcedureExecutor& executor) const {
  return impl_->unsent_reports(executor);
}
void MemoryCluster::deliver_report(ProcedureExecutor& executor, std::size_t which) {
  impl_->deliver_report(executor, which);
}
ClusterSnapshot MemoryCluster::snapshot() const { return impl_->snapshot(); }

}  // namespace pv2
