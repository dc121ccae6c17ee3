// SPDX-License-Identifier: Apache-2.0
//
// All queues and the executor are run in turns with the network. A process that has ended itself is
// taken away in the next turn.

#include "cluster/master/cluster_world.h"

#include <pv2/engine/inspection.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/cluster_files.h"
#include "replication/server_replication.h"
#include "wire/catalogue_rows.h"

namespace pv2::testing::cluster_world {

using namespace pv2::cluster;  // NOLINT: this namespace is the world's own

namespace {

/// A queue whose work another one does.
class Onward final : public WorkQueue {
 public:
  explicit Onward(WorkQueue& to) : to_(to) {}
  void run(std::function<void()> work) override { to_.run(std::move(work)); }

 private:
  WorkQueue& to_;
};

}  // namespace

ClusterWorld::ClusterWorld(ClusterWorld& beside, std::string root)
    : clock(beside.clock),
      transport(beside.transport),
      shared_env_(beside.shared_env_),
      layout(std::move(root)),
      worlds_(beside.worlds_) {
  worlds_->push_back(this);
}

ClusterWorld::~ClusterWorld() {
  std::erase(*worlds_, this);
  kill_master();
  for (auto& process : aside_) kill(std::move(process), Death::kHeard);
  while (!servers_.empty()) kill_server(servers_.begin()->first);
}

void ClusterWorld::start_master() {
  REQUIRE(master_ == nullptr);
  // Whoever had the store before writes nothing into it any more.
  for (const auto& process : aside_) {
    process->store->crash_before(process->store->commits() + 1, FaultStore::AfterCrash::kFail);
    process->is_deposed = true;
  }
  auto process = std::make_unique<MasterProcess>();
  process->network = std::make_shared<ProcessTransport>(transport, route);
  auto store = std::make_unique<FaultStore>(std::make_unique<MemoryProcedureStore>(disk));
  process->store = store.get();
  MasterOptions options{.root = layout.root(), .listen = "master:0", .lease = lease, .workers = 0};
  options.log = [](LogLevel, std::string_view) {};
  if (adjust_master) adjust_master(options);
  master_end.reset();
  auto started =
      Master::start(options, {.transport = process->network,
                              .clock = clock,
                              .files = files,
                              .table_work = process->table_work,
                              .recovery_work = process->recovery_work,
                              .link_work = process->link_work,
                              .peer_looks = process->peer_looks,
                              .store = std::move(store),
                              .on_end = [end = &process->end](const Status& why) { *end = why; },
                              .seed = seed});
  if (!started.ok() && env.is_off()) return;
  REQUIRE(started.status().to_string() == "OK");
  process->master = *std::move(started);
  master_ = std::move(process);
}

void ClusterWorld::kill(std::unique_ptr<MasterProcess> process, Death death) {
  // From the next commit on nothing is written, so closing the executor changes nothing on disk.
  process->store->crash_before(process->store->commits() + 1, FaultStore::AfterCrash::kFail);
  process->network->die(death);
  if (death == Death::kSilent) graves_.push_back(process->network);
  for (ManualWorkQueue* const queue :
       {&process->table_work, &process->recovery_work, &process->link_work, &process->peer_looks}) {
    queue->clear();
  }
  process->master.reset();
}

void ClusterWorld::kill_master(Death death) {
  if (master_ != nullptr) kill(std::move(master_), death);
}

void ClusterWorld::pause_master() {
  REQUIRE(master_ != nullptr);
  master_->is_stopped = true;
  aside_.push_back(std::move(master_));
}

void ClusterWorld::resume_masters() {
  for (const auto& process : aside_) process->is_stopped = false;
  if (master_ != nullptr || aside_.empty() || aside_.back()->is_deposed) return;
  master_ = std::move(aside_.back());
  aside_.pop_back();
}

void ClusterWorld::kill_deposed_masters() {
  for (auto& process : aside_) {
    if (process->is_deposed) kill(std::exchange(process, nullptr), Death::kHeard);
  }
  std::erase(aside_, nullptr);
}

ServerName ClusterWorld::start_server(const std::string& host) {
  auto process = std::make_unique<ServerProcess>();
  process->network = std::make_shared<ProcessTransport>(transport, route);
  RegionServerOptions options{.host = host, .root = layout.root(), .listen = host + ":0"};
  options.log = [](LogLevel, std::string_view) {};
  if (adjust_server) adjust_server(options);
  auto started = RegionServer::start(
      options,
      {.transport = process->network,
       .clock = clock,
       .files = files,
       .queues = {process->work, process->work, process->work, process->work, process->work,
                  process->work, process->work},
       .on_end = [end = &process->end](const Status& why) { *end = why; },
       .make_replication = make_replication ? make_replication : replication_of_servers(),
       .make_peer_queue =
           [&looks = process->peer_looks](const std::string& peer) {
             return Result<std::unique_ptr<WorkQueue>>(std::make_unique<Onward>(looks[peer]));
           }});
  if (!started.ok() && env.is_off()) return {};
  REQUIRE(started.status().to_string() == "OK");
  process->server = *std::move(started);
  const ServerName name = process->server->name();
  servers_[name] = std::move(process);
  return name;
}

void ClusterWorld::kill_server(const ServerName& given, Death death) {
  const ServerName name = given;
  const auto process = std::move(servers_.at(name));
  servers_.erase(name);
  process->network->die(death);
  if (death == Death::kSilent) graves_.push_back(process->network);
  process->work.clear();
  for (auto& [peer, queue] : process->peer_looks) queue.clear();
  process->server.reset();
}

void ClusterWorld::cut_power(CrashEnv::TornTail torn) {
  env.crash(torn);
  kill_master(Death::kSilent);
  for (auto& process : aside_) kill(std::move(process), Death::kSilent);
  aside_.clear();
  while (!servers_.empty()) kill_server(servers_.begin()->first, Death::kSilent);
  env.reboot();
}

void ClusterWorld::begin_end_of_server(const ServerName& name) {
  ServerProcess& process = *servers_.at(name);
  process.server->stop(
      [end = &process.end] { *end = Status(StatusCode::kStopping, "it was asked to end"); });
}

void ClusterWorld::end_server(const ServerName& given) {
  const ServerName name = given;
  bool is_stopped = false;
  servers_.at(name)->server->stop([&] { is_stopped = true; });
  run_until([&] { return is_stopped; });
  kill_server(name);
}

std::vector<ServerName> ClusterWorld::servers() const {
  std::vector<ServerName> names;
  for (const auto& [name, process] : servers_) names.push_back(name);
  return names;
}

std::vector<RegionInfo> ClusterWorld::regions_on(const ServerName& name) const {
  std::vector<RegionInfo> regions;
  for (const RegionStatus& status : servers_.at(name)->server->status().regions) {
    regions.push_back(status.region);
  }
  return regions;
}

std::unique_ptr<ClusterClient> ClusterWorld::connect(std::uint64_t client_seed) {
  auto client =
      ClusterClient::open({.find_master = [this] { return files.read(layout.master_address()); },
                           .transport = transport,
                           .clock = clock,
                           .seed = client_seed});
  REQUIRE(client.ok());
  return *std::move(client);
}

ProcedureResult ClusterWorld::result_of(ProcedureId id) {
  const auto result = answer<Result<ProcedureResult>>(
      [&](auto done) { master().executor().async().wait(id, std::move(done)); });
  REQUIRE(result.status().to_string() == "OK");
  return *result;
}

bool ClusterWorld::step_server(const ServerName& name) {
  ServerProcess& process = *servers_.at(name);
  return process.network->run_one() || run_work(process);
}

bool ClusterWorld::run_some(MasterProcess& process, std::size_t steps) const {
  if (process.is_stopped) return false;
  bool is_busy = process.network->run_one();
  is_busy |= process.master->executor().run_until_idle(steps) != 0;
  is_busy |= run_work(process);
  return is_busy;
}

bool ClusterWorld::run_work(MasterProcess& process) const {
  bool is_busy = process.recovery_work.run_one();
  is_busy |= !hold_table_work && process.table_work.run_one();
  is_busy |= process.link_work.run_one();
  is_busy |= hung_peers.empty() && process.peer_looks.run_one();
  return is_busy;
}

bool ClusterWorld::run_work(ServerProcess& process) const {
  if (process.work.run_one()) return true;
  return std::ranges::any_of(process.peer_looks, [&](auto& peer) {
    return !hung_peers.contains(peer.first) && peer.second.run_one();
  });
}

void ClusterWorld::settle() {
  bool is_busy = true;
  while (is_busy) {
    is_busy = transport->run_until_idle() != 0;
    for (ClusterWorld* const world : *worlds_) is_busy |= world->settle_once();
  }
}

bool ClusterWorld::settle_once() {
  bool is_busy = false;
  if (master_ != nullptr) is_busy |= run_some(*master_, SIZE_MAX);
  for (const auto& process : aside_) is_busy |= run_some(*process, SIZE_MAX);
  for (auto& [name, process] : servers_) {
    if (process->is_stopped) continue;
    is_busy |= process->network->run_one();
    is_busy |= run_work(*process);
  }
  is_busy |= bury();
  return is_busy;
}

bool ClusterWorld::bury() {
  bool has_ended = false;
  if (master_ != nullptr && master_->end) {
    master_end = master_->end;
    kill_master();
    has_ended = true;
  }
  for (auto& process : aside_) {
    if (process->end) kill(std::exchange(process, nullptr), Death::kHeard);
  }
  has_ended |= std::erase(aside_, nullptr) != 0;
  std::vector<ServerName> ended;
  for (const auto& [name, process] : servers_) {
    if (process->end) ended.push_back(name);
  }
  for (const ServerName& name : ended) kill_server(name);
  return has_ended || !ended.empty();
}

bool ClusterWorld::turn(Random& random) {
  const std::uint64_t choice = random.below(2 + aside_.size() + servers_.size());
  if (choice == 0) return transport->run_until_idle(1) != 0;
  if (choice == 1) return master_ != nullptr && run_some(*master_, 1);
  if (choice < 2 + aside_.size()) return run_some(*aside_[choice - 2], 1);
  ServerProcess& process =
      *std::next(servers_.begin(), static_cast<std::ptrdiff_t>(choice - 2 - aside_.size()))->second;
  if (process.is_stopped) return false;
  // Either the loop or one of its queues, which are threads of their own.
  return random.below(2) == 0 ? process.network->run_one() : run_work(process);
}

void ClusterWorld::run_until(const std::function<bool()>& done) {
  settle();
  for (int i = 0; i < 36'000 && !done(); ++i) {
    transport->run_for(std::chrono::milliseconds(50));
    settle();
  }
  REQUIRE(done());
}

void ClusterWorld::run_for(Duration time) {
  const SteadyTime end = clock->steady_now() + time;
  while (clock->steady_now() < end) {
    transport->run_for(std::chrono::milliseconds(50));
    settle();
  }
}

void ClusterWorld::run_until_quiet() {
  run_until([&] {
    return master_ != nullptr && master().is_online() &&
           master().executor().inspect().live_procedures() == 0;
  });
}

std::vector<std::string> ClusterWorld::disorder() {
  const auto client = connect(99);
  CatalogueState rows;
  Scan range;
  for (bool is_more = true; is_more;) {
    const auto page = answer<Result<ScanPage>>(
        [&](auto done) { client->scan(meta_table(), range, std::move(done)); });
    REQUIRE(page.status().to_string() == "OK");
    for (const Cell& cell : page->cells) REQUIRE(load_cell(cell, rows).ok());
    is_more = page->next_row.has_value();
    if (is_more) range = rest_of(std::move(range), *page);
  }
  for (const ServerRow& row : master().servers().dead) rows.load({row, ""});
  ClusterSnapshot snapshot;
  add_rows(rows, snapshot);
  for (const auto& [name, process] : servers_) add_server(process->server->status(), snapshot);
  const auto cached = answer<Result<std::vector<TableDescriptor>>>(
      [&](auto done) { client->descriptors(std::move(done)); });
  REQUIRE(cached.status().to_string() == "OK");
  snapshot.cached = *cached;
  std::erase_if(snapshot.cached, [](const auto& table) { return is_meta(table.name); });
  REQUIRE(add_files(files, layout, snapshot).ok());
  return find_disorder(snapshot);
}

WriteOutcome ClusterWorld::put(ClusterClient& client, const TableName& table,
                               const std::string& row, const std::string& value) {
  return answer<WriteOutcome>([&](auto done) {
    client.write(
        table,
        {{.kind = MutationKind::kPut, .row = row, .family = "f", .qualifier = "q", .value = value}},
        {}, std::move(done));
  });
}

std::string ClusterWorld::get(ClusterClient& client, const TableName& table,
                              const std::string& row) {
  const auto cells = answer<Result<std::vector<Cell>>>(
      [&](auto done) { client.get(table, row, {}, std::move(done)); });
  REQUIRE(cells.status().to_string() == "OK");
  return cells->empty() ? "" : cells->front().value;
}

}  // namespace pv2::testing::cluster_world
