// SPDX-License-Identifier: Apache-2.0
//
// MemoryCluster: every call does its work under one mutex when it is made; only the answer may come
// later. So a crash of the executor loses the answer, as with a real cluster.

#include "pv2/procedures/memory_cluster.h"

#include <pv2/base/mutex.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cluster/catalogue_state.h"

namespace pv2 {
namespace {

/// The state of the whole cluster. Guarded by its owner.
struct World {
  struct Server {
    bool alive = true;
    bool registered = true;
    std::map<std::string, std::uint64_t> open;
    std::map<std::string, CallOutcome> answered;  // by effect key, to be repeated
  };
  struct Directory {
    TableDescriptor descriptor;
    std::set<std::string> regions;
  };

  CatalogueState catalogue;
  std::map<TableName, Directory> directories;
  std::set<TableName> cached;
  std::map<ServerName, Server> servers;
  std::uint64_t last_start_code = 100;
  std::map<std::string, unsigned> effects;

  void lay_out(const TableDescriptor& descriptor, const std::vector<RegionInfo>& regions,
               const std::string& effect_key) {
    Directory& directory = directories[descriptor.name];
    if (directory.descriptor != descriptor) ++effects["descriptor " + effect_key];
    directory.descriptor = descriptor;
    std::set<std::string> wanted;
    for (const RegionInfo& region : regions) wanted.insert(region.id);
    for (const std::string& id : wanted) {
      if (directory.regions.insert(id).second) ++effects["directory " + id + ' ' + effect_key];
    }
    std::erase_if(directory.regions, [&](const std::string& id) { return !wanted.contains(id); });
  }

  CallOutcome execute(Server& server, ClusterCall kind, const RegionCall& call, bool refuse) {
    if (const auto said = server.answered.find(call.effect_key); said != server.answered.end()) {
      return said->second;
    }
    CallOutcome answer{CallOutcome::Kind::kRefused, 0, "the script says that the server refuses"};
    if (!refuse && kind == ClusterCall::kOpenRegion) {
      answer = {CallOutcome::Kind::kDone, call.last_sequence + 1, ""};
      server.open[call.region.id] = answer.open_sequence;
      ++effects["open " + call.effect_key];
    } else if (!refuse) {
      answer = {CallOutcome::Kind::kDone, 0, ""};
      server.open.erase(call.region.id);
      ++effects["close " + call.effect_key];
    }
    server.answered[call.effect_key] = answer;
    return answer;
  }
};

}  // namespace

class MemoryCluster::Impl final : public Catalogue,
                                  public TableFiles,
                                  public ServerCalls,
                                  public DescriptorCache {
 public:
  explicit Impl(Delivery delivery) : delivery_(delivery) {}

  void read_table(TableName name, Completion<Result<std::optional<TableRow>>> done) override {
    query(ClusterCall::kReadTable, done, [&](World& world) { return world.catalogue.table(name); });
  }
  void read_region(std::string id, Completion<Result<std::optional<RegionRow>>> done) override {
    query(ClusterCall::kReadRegion, done, [&](World& world) { return world.catalogue.region(id); });
  }
  void regions_on(ServerName server, Completion<Result<std::vector<RegionRow>>> done) override {
    query(ClusterCall::kRegionsOn, done,
          [&](World& world) { return world.catalogue.regions_on(server); });
  }
  void read_server(ServerName name, Completion<Result<ServerState>> done) override {
    query(ClusterCall::kReadServer, done,
          [&](World& world) { return world.catalogue.server(name); });
  }
  void write(CatalogueWrite write, Completion<Result<Applied>> done) override {
    query(ClusterCall::kWrite, done, [&](World& world) {
      Result<Applied> applied = world.catalogue.apply(write);
      if (applied.ok() && *applied == Applied::kNow) {
        ++world.effects["catalogue " + write.effect_key];
      }
      return applied;
    });
  }

  void write_layout(TableDescriptor descriptor, std::vector<RegionInfo> regions,
                    std::string effect_key, Completion<Status> done) override {
    std::optional<Status> answer;
    {
      MutexLock lock(cluster_mutex_);
      const std::optional<ClusterFault> fault = take_fault(ClusterCall::kWriteLayout);
      if (fault == ClusterFault::kHalf) regions.resize(regions.size() / 2);
      if (happens(fault)) world_.lay_out(descriptor, regions, effect_key);
      answer = fault ? lost() : Status();
    }
    deliver(std::move(done), std::move(*answer));
  }

  void refresh(TableName table, Completion<Status> done) override {
    std::optional<Status> answer;
    {
      MutexLock lock(cluster_mutex_);
      const std::optional<ClusterFault> fault = take_fault(ClusterCall::kRefresh);
      const bool there = world_.directories.contains(table);
      if (happens(fault) && there) world_.cached.insert(table);
      answer = fault   ? lost()
               : there ? Status()
                       : Status(StatusCode::kNotFound, "there is no directory of this table");
    }
    deliver(std::move(done), std::move(*answer));
  }

  void open_region(RegionCall call, Completion<CallOutcome> done) override {
    call_server(ClusterCall::kOpenRegion, call, std::move(done));
  }
  void close_region(RegionCall call, Completion<CallOutcome> done) override {
    call_server(ClusterCall::kCloseRegion, call, std::move(done));
  }
  void live_servers(Completion<Result<std::vector<ServerName>>> done) override {
    query(ClusterCall::kLiveServers, done, [](World& world) {
      std::vector<ServerName> names;
      for (const auto& [name, server] : world.servers) {
        if (server.registered) names.push_back(name);
      }
      return names;
    });
  }
  void fence(ServerName name, Completion<Status> done) override {
    std::optional<Status> answer;
    {
      MutexLock lock(cluster_mutex_);
      const std::optional<ClusterFault> fault = take_fault(ClusterCall::kFence);
      if (happens(fault)) {
        world_.servers[name].alive = false;
        world_.servers[name].registered = false;
        world_.servers[name].open.clear();
      }
      answer = fault ? lost() : Status();
    }
    deliver(std::move(done), std::move(*answer));
  }

  ServerName add_server(std::string_view host) {
    MutexLock lock(cluster_mutex_);
    ServerName name{std::string(host), ++world_.last_start_code};
    world_.servers[name] = {};
    return name;
  }
  void kill_server(const ServerName& name) {
    MutexLock lock(cluster_mutex_);
    world_.servers[name].alive = false;
    world_.servers[name].open.clear();
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

  bool deliver_one() {
    std::function<void()> answer;
    {
      MutexLock lock(cluster_mutex_);
      if (answers_.empty()) return false;
      answer = std::move(answers_.front());
      answers_.pop_front();
    }
    answer();
    return true;
  }

  ClusterSnapshot snapshot() const {
    MutexLock lock(cluster_mutex_);
    ClusterSnapshot snapshot;
    world_.catalogue.describe(snapshot);
    for (const auto& [name, directory] : world_.directories) {
      snapshot.directories.push_back({directory.descriptor, {}});
      auto& ids = snapshot.directories.back().regions;
      ids.assign(directory.regions.begin(), directory.regions.end());
    }
    snapshot.cached.assign(world_.cached.begin(), world_.cached.end());
    for (const auto& [name, server] : world_.servers) {
      if (server.alive) snapshot.open[name] = server.open;
    }
    snapshot.effects = world_.effects;
    return snapshot;
  }

 private:
  static bool happens(std::optional<ClusterFault> fault) {
    return !fault || *fault == ClusterFault::kLoseReply || *fault == ClusterFault::kHalf;
  }
  static Status lost() {
    return {StatusCode::kUnavailable, "the script says that this call fails"};
  }

  std::optional<ClusterFault> take_fault(ClusterCall call) PV2_REQUIRES(cluster_mutex_) {
    ++calls_[static_cast<std::size_t>(call)];
    auto& script = faults_[static_cast<std::size_t>(call)];
    if (script.empty()) return std::nullopt;
    const ClusterFault fault = script.front();
    script.pop_front();
    return fault;
  }

  /// A call that answers with a Result of what `work` returns.
  template <class T, class Work>
  void query(ClusterCall call, Completion<Result<T>>& done, Work work)
      PV2_EXCLUDES(cluster_mutex_) {
    std::optional<Result<T>> answer;
    {
      MutexLock lock(cluster_mutex_);
      const std::optional<ClusterFault> fault = take_fault(call);
      if (happens(fault)) answer.emplace(work(world_));
      if (fault) answer.emplace(lost());
    }
    deliver(std::move(done), std::move(*answer));
  }

  void call_server(ClusterCall kind, const RegionCall& call, Completion<CallOutcome> done) {
    CallOutcome answer;
    {
      MutexLock lock(cluster_mutex_);
      World::Server& server = world_.servers[call.server];
      const std::optional<ClusterFault> fault = take_fault(kind);
      if (!server.alive || fault == ClusterFault::kFail) {
        answer = {CallOutcome::Kind::kNotSent, 0, "connection refused"};
      } else if (fault == ClusterFault::kLoseRequest) {
        answer = {CallOutcome::Kind::kUnknown, 0, "the request was lost"};
      } else {
        answer = world_.execute(server, kind, call, fault == ClusterFault::kRefuse);
        if (fault == ClusterFault::kLoseReply) {
          answer = {CallOutcome::Kind::kUnknown, 0, "the reply was lost"};
        }
      }
    }
    deliver(std::move(done), std::move(answer));
  }

  template <class T>
  void deliver(Completion<T> done, T value) PV2_EXCLUDES(cluster_mutex_) {
    if (delivery_ == Delivery::kInline) return done(std::move(value));
    MutexLock lock(cluster_mutex_);
    answers_.push_back(
        [done = std::move(done), value = std::move(value)]() mutable { done(std::move(value)); });
  }

  static constexpr std::size_t kCalls = static_cast<std::size_t>(ClusterCall::kRefresh) + 1;

  const Delivery delivery_;
  mutable Mutex cluster_mutex_;
  World world_ PV2_GUARDED_BY(cluster_mutex_);
  std::array<std::deque<ClusterFault>, kCalls> faults_ PV2_GUARDED_BY(cluster_mutex_);
  std::array<std::size_t, kCalls> calls_ PV2_GUARDED_BY(cluster_mutex_){};
  std::deque<std::function<void()>> answers_ PV2_GUARDED_BY(cluster_mutex_);

 public:
  ClusterPorts ports{*this, *this, *this, *this};
};

MemoryCluster::MemoryCluster(Delivery delivery) : impl_(std::make_unique<Impl>(delivery)) {}
MemoryCluster::~MemoryCluster() = default;
ClusterPorts& MemoryCluster::ports() { return impl_->ports; }
ServerName MemoryCluster::add_server(std::string_view host) { return impl_->add_server(host); }
void MemoryCluster::kill_server(const ServerName& server) { impl_->kill_server(server); }
void MemoryCluster::fail_next(ClusterCall call, ClusterFault fault, unsigned times) {
  impl_->fail_next(call, fault, times);
}
std::size_t MemoryCluster::calls(ClusterCall call) const { return impl_->calls(call); }
bool MemoryCluster::deliver_one() { return impl_->deliver_one(); }
std::size_t MemoryCluster::deliver_all() {
  std::size_t delivered = 0;
  while (impl_->deliver_one()) ++delivered;
  return delivered;
}
ClusterSnapshot MemoryCluster::snapshot() const { return impl_->snapshot(); }

}  // namespace pv2
