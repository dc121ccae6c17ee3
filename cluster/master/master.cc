// SPDX-License-Identifier: Apache-2.0
//
// How the parts of a master know each other. Everything but the files works on the loop.

#include "master/master.h"

#include <fmt/core.h>
#include <pv2/base/fields.h>
#include <pv2/engine/async_executor.h>
#include <pv2/engine/executor_options.h>
#include <pv2/engine/inspection.h>
#include <pv2/procedures/claim_queues.h>
#include <pv2/procedures/cluster_ports.h>
#include <pv2/procedures/init_meta.h>
#include <pv2/remote/executor_service.h>
#include <pv2/rpc/rpc_server.h>

#include <chrono>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "master/cleaner.h"
#include "master/cluster_id.h"
#include "master/descriptor_store.h"
#include "master/dispatcher.h"
#include "master/local_state.h"
#include "master/meta_catalogue.h"
#include "master/meta_table.h"
#include "master/peer_storage_port.h"
#include "master/probe.h"
#include "master/report_desk.h"
#include "master/server_calls_port.h"
#include "master/server_links.h"
#include "master/server_logs_port.h"
#include "master/server_registry.h"
#include "master/server_watch.h"
#include "master/splitter_slots.h"
#include "master/table_files_port.h"
#include "storage/log_directories.h"
#include "storage/peer_files.h"
#include "storage/table_directories.h"
#include "wire/loop_tasks.h"
#include "wire/methods.h"
#include "wire/option_limits.h"

namespace pv2::cluster {
namespace {

// Failures here pass within the time that a server takes to be noticed as dead.
constexpr RetryPolicy kRetry{.base = std::chrono::milliseconds(50), .cap = std::chrono::seconds(5)};
// Rare, because it is for a case that is rare, and harms nobody meanwhile.
constexpr int kStrangersEvery = 6;
// A warning about what goes on: often enough to be seen in a log, and never a flood.
constexpr Duration kWarningPause = std::chrono::minutes(1);
// One nonce for all masters of a directory: the cluster is made once. After a failure the next
// master takes the next one.
constexpr Nonce kInitMetaNonce{0x696e69746d657461, 1};

// With the epoch behind it: local_state.h.
std::string state_file(const ClusterLayout& layout) { return layout.master() + "/state"; }

Result<LocalState> open_local(const FileTree& files, const ClusterLayout& layout) {
  if (Status bad = make_cluster_id(files, layout); !bad.ok()) return bad;
  auto local = LocalState::open(files, state_file(layout));
  if (!local.ok()) return local.status();
  LocalContents contents = local->contents();
  ++contents.epoch;
  if (Status bad = local->replace(std::move(contents)); !bad.ok()) return bad;
  local->remove_earlier();
  return local;
}

}  // namespace

/// In the order in which they need each other.
struct Master::Parts {
  Parts(MasterOptions given_options, MasterGround& ground, LocalState local_state)
      : options(std::move(given_options)),
        transport(ground.transport),
        files(ground.files),
        recovery_work(ground.recovery_work),
        layout(options.root),
        on_end(std::move(ground.on_end)),
        probe(options.probe),
        local(std::move(local_state)),
        epoch(local.contents().epoch),
        registry(options.lease, [this](const ServerName& server,
                                       const std::string& why) { watch->crash(server, why); }),
        links(transport, ground.link_work,
              [this](const ServerName& server) { return registry.address(server); }),
        dispatcher(transport, links, epoch, options.lease,
                   {.is_awaited =
                        [this](const ServerName& server) { return registry.is_expected(server); },
                    .give_up =
                        [this](const ServerName& server) {
                          registry.give_up(server, "it answered none of many calls");
                        },
                    .on_later_epoch = [this] { look_for_successor(); }}),
        slots([this] { return registry.live(); },
              [this](ProcedureId procedure) {
                return executor->inspect().describe(procedure).status().code() ==
                       StatusCode::kNotFound;
              }),
        tables(files, layout),
        logs(files, layout),
        peers(files, layout),
        catalogue(transport, local, ground.recovery_work, probe,
                  {.server_changed = [this](const ServerRow& row) { server_changed(row); },
                   .meta_changed = [this](const RegionRow&) { meta.host_changed(); },
                   .on_fatal = [this](const Status& why) { end(why); }}),
        meta(transport, links, epoch,
             {.find_host = [this] { return host_of_meta(); },
              .on_later_epoch = [this] { look_for_successor(); },
              .notice = [this](const std::string& line) { say(LogLevel::kWarning, line); }}),
        server_calls(transport, dispatcher, registry, catalogue, slots, probe),
        table_files(tables, ground.table_work, probe),
        server_logs(logs, ground.recovery_work, probe),
        peer_storage(transport, peers, ground.recovery_work, ground.peer_looks),
        descriptors(tables, ground.table_work),
        cleaner(transport, files, layout, {ground.recovery_work, ground.table_work}, options,
                {.is_retired = [this](const ServerName& server) { return is_retired(server); },
                 .claim = [this](const Cleaner::Directory& queues,
                                 std::function<void()> done) { claim(queues, std::move(done)); },
                 .say = [this](const std::string& line) { say(LogLevel::kInfo, line); }}),
        tasks(transport) {}

  Status open_executor(MasterGround& ground);
  Status listen();
  Status begin();
  /// Submits InitMeta, which makes the catalogue.
  void make_cluster(Nonce nonce);
  void wait_for_cluster(Nonce nonce, const Submitted& submitted);
  void is_online();
  /// Now and then: the logs of a server that died before it was heard are nobody's otherwise, and
  /// so is what a server has written that did not know yet that it is dead.
  void look_for_strangers();
  /// Whether the catalogue is online and complete.
  [[nodiscard]] bool is_ready() const {
    return catalogue.is_online() && catalogue.rows().name_space(std::string(kDefaultNamespace));
  }
  void server_changed(const ServerRow& row);
  [[nodiscard]] bool is_retired(const ServerName& server) const {
    return catalogue.rows().server(server).state == ServerState::kRetired;
  }
  void claim(const Cleaner::Directory& queues, std::function<void()> done);
  [[nodiscard]] std::optional<ServerName> host_of_meta() const;
  [[nodiscard]] ServerList list_servers() const;
  void end(const Status& why);
  void look_for_successor();
  /// `read` says whether the file could be read that would name a successor.
  void warn_of_later_epoch(const Status& read);
  void say(LogLevel level, const std::string& line) const { log(options.log, level, line); }

  const MasterOptions options;
  const std::shared_ptr<Transport> transport;
  const FileTree& files;
  WorkQueue& recovery_work;
  const ClusterLayout layout;
  const std::function<void(const Status&)> on_end;
  const Probe probe;
  bool is_ended = false;
  bool looks_for_successor = false;
  SteadyTime warn_again_at{};
  LocalState local;
  const std::uint64_t epoch;

  ServerRegistry registry;
  ServerLinks links;
  Dispatcher dispatcher;
  SplitterSlots slots;
  TableDirectories tables;
  LogDirectories logs;
  PeerFiles peers;
  MetaCatalogue catalogue;
  MetaTable meta;

  ServerCallsPort server_calls;
  TableFilesPort table_files;
  ServerLogsPort server_logs;
  PeerStoragePort peer_storage;
  DescriptorStore descriptors;
  Cleaner cleaner;
  ClusterPorts ports{catalogue, table_files, server_calls, server_logs, peer_storage, descriptors};

  // Made one after the other when the master starts.
  std::unique_ptr<ProcedureExecutor> executor;
  std::unique_ptr<ServerWatch> watch;
  std::unique_ptr<ReportDesk> reports;
  std::unique_ptr<ExecutorService> service;
  std::unique_ptr<RpcServer> server;
  LoopTasks tasks;
};

Result<std::unique_ptr<Master>> Master::start(MasterOptions options, MasterGround ground) {
  if (Status bad = check_options(options); !bad.ok()) return bad;
  const ClusterLayout layout(options.root);
  auto local = open_local(ground.files, layout);
  if (!local.ok()) return local.status();
  auto parts = std::make_unique<Parts>(std::move(options), ground, *std::move(local));
  if (Status bad = parts->open_executor(ground); !bad.ok()) return bad;
  if (Status bad = parts->listen(); !bad.ok()) return bad;
  std::unique_ptr<Master> master(new Master(std::move(parts)));
  if (Status bad = master->parts_->begin(); !bad.ok()) return bad;
  return master;
}

Status Master::Parts::open_executor(MasterGround& ground) {
  ProcedureRegistry types;
  add_cluster_procedures(types, ports);
  ExecutorOptions settings{.store = std::move(ground.store), .registry = std::move(types)};
  settings.workers = options.workers;
  settings.clock = ground.clock;
  settings.seed = ground.seed;
  settings.retry = kRetry;
  settings.retention.ttl = options.results_kept;
  if (options.log) settings.log = options.log;
  auto opened = ProcedureExecutor::open(std::move(settings));
  if (!opened.ok()) return opened.status();
  executor = *std::move(opened);
  if (options.on_loaded) options.on_loaded(*executor);

  watch = std::make_unique<ServerWatch>(
      transport, ServerWatch::Parts{*executor, ports, catalogue, registry}, epoch,
      ServerWatch::Events{
          .came =
              [this](const ServerName& name) {
                slots.look();
                dispatcher.came(name);
              },
          .on_fatal = [this](const Status& why) { end(why); },
          .notice = [this](const std::string& line) { say(LogLevel::kInfo, line); }});
  reports = std::make_unique<ReportDesk>(transport, *executor, catalogue, registry, epoch,
                                         [this] { look_for_successor(); });
  service = std::make_unique<ExecutorService>(*executor);
  return {};
}

Status Master::Parts::listen() {
  RpcServerOptions settings{.transport = transport, .address = options.listen, .log = options.log};
  service->add_to(settings.methods);
  // Until the cluster is made, whoever wants something of it asks again.
  settings.methods["pv2.submit"] = [this,
                                    submit = settings.methods["pv2.submit"]](IncomingCall call) {
    if (is_ready()) return submit(std::move(call));
    call.refuse({StatusCode::kUnavailable, "the master does not have the catalogue yet"});
  };
  settings.methods[std::string(kMasterHeartbeat)] = [this](IncomingCall call) {
    watch->take(std::move(call));
  };
  settings.methods[std::string(kMasterReport)] = [this](IncomingCall call) {
    reports->take(std::move(call));
  };
  settings.methods[std::string(kMasterServers)] = [this](IncomingCall call) {
    ServerList list = list_servers();
    std::string body;
    encode_fields(list, FieldSelection::kAll, body);
    call.reply(body);
  };
  settings.methods[std::string(kMasterDescriptors)] = [this](IncomingCall call) {
    DescriptorRequest request;
    const Status bad = decode_fields(request, FieldSelection::kAll, call.body());
    if (!bad.ok()) {
      return call.fail({StatusCode::kInvalidArgument, "not a message: " + bad.to_string()});
    }
    DescriptorList list = descriptors.list(request.after);
    std::string body;
    encode_fields(list, FieldSelection::kAll, body);
    call.reply(body);
  };
  auto opened = RpcServer::open(std::move(settings));
  if (!opened.ok()) return opened.status();
  server = *std::move(opened);
  return files.write(layout.master_address(), server->address());
}

Status Master::Parts::begin() {
  // One table that is damaged must not keep all others from being served.
  Status listed =
      descriptors.load_all([this](const Status& bad) { say(LogLevel::kError, bad.to_string()); });
  if (!listed.ok()) return listed;
  const auto directories = logs.servers();
  if (!directories.ok()) return directories.status();
  std::vector<ServerName> expected;
  for (const auto& directory : *directories) expected.push_back(directory.server);

  executor->start();
  run_on_loop(*transport, [&] {
    if (!catalogue.rows().region(meta_region().id)) make_cluster(kInitMetaNonce);
    watch->start(expected);
    tasks.after(kStrangersEvery * options.lease, [this] { look_for_strangers(); });
    catalogue.when_online([this] { is_online(); });
    catalogue.begin(meta);
  });
  return {};
}

void Master::Parts::look_for_strangers() {
  recovery_work.run([this, logs = this->logs, post = tasks.poster()] {
    post([this, directories = logs.servers()] {
      std::vector<ServerName> named;
      if (directories.ok()) {
        for (const auto& directory : *directories) {
          const ServerState state = catalogue.rows().server(directory.server).state;
          const bool is_ghost = state == ServerState::kRetired;
          if (!is_ghost) named.push_back(directory.server);
          if (!is_ghost) continue;
          recovery_work.run(
              [logs = this->logs, server = directory.server] { (void)logs.remove_ghost(server); });
        }
      }
      watch->expect(named);
      slots.look();  // an operator may have ended a procedure that has one
      tasks.after(kStrangersEvery * options.lease, [this] { look_for_strangers(); });
    });
  });
}

void Master::Parts::make_cluster(Nonce nonce) {
  executor->async().submit(
      InitMeta(ports), {.nonce = nonce, .owner = "master"},
      [this, nonce, post = tasks.poster()](const Result<Submitted>& submitted) {
        post([this, nonce, submitted] {
          if (!submitted.ok()) return end(submitted.status());
          wait_for_cluster(nonce, *submitted);
        });
      });
}

void Master::Parts::wait_for_cluster(Nonce nonce, const Submitted& submitted) {
  executor->async().wait(
      submitted.id, [this, nonce, is_replayed = submitted.replayed,
                     post = tasks.poster()](const Result<ProcedureResult>& result) {
        if (!result.ok() || result->status.ok()) return;  // this master stops, or all is well
        post([this, nonce, is_replayed, why = result->status] {
          // It failed for an earlier master. Since then an operator may have mended the cause.
          if (is_replayed) return make_cluster({nonce.group, nonce.value + 1});
          say(LogLevel::kError, "the cluster cannot be made: " + why.to_string() +
                                    ". Mend that, and start the master again");
        });
      });
}

void Master::Parts::is_online() {
  // A server may be named that has no directory of logs any more, and does not come.
  std::set<ServerName> named;
  for (const auto& [id, kept] : catalogue.rows().regions()) {
    if (!kept.row.server.empty() && kept.row.state != RegionState::kClosed &&
        kept.row.state != RegionState::kSplit) {
      named.insert(kept.row.server);
    }
  }
  watch->expect({named.begin(), named.end()});
  cleaner.start();
  say(LogLevel::kInfo, "the catalogue is online");
}

void Master::Parts::server_changed(const ServerRow& row) {
  if (!is_dead(row.state)) return;
  // It may have been recorded by somebody who did not wait for its lease.
  registry.forget(row.name);
  dispatcher.fail_all(row.name);
  server_calls.server_changed(row.name);
  slots.look();
}

void Master::Parts::claim(const Cleaner::Directory& queues, std::function<void()> done) {
  const auto& [peer, dead] = queues;
  executor->async().submit(
      ClaimQueues(ports, dead, peer), {.owner = "master"},
      [this, dead = dead, done](const Result<Submitted>& submitted) {
        if (!submitted.ok()) {
          say(LogLevel::kWarning,
              "the queues that server " + to_string(dead) +
                  " has left are not claimed: " + submitted.status().to_string());
          return done();
        }
        executor->async().wait(submitted->id, [done](const Result<ProcedureResult>&) { done(); });
      });
}

std::optional<ServerName> Master::Parts::host_of_meta() const {
  const std::optional<RegionRow> row = catalogue.rows().region(meta_region().id);
  if (!row || row->state != RegionState::kOpen) return std::nullopt;
  if (is_dead(catalogue.rows().server(row->server).state)) return std::nullopt;
  return row->server;
}

ServerList Master::Parts::list_servers() const {
  ServerList list;
  list.live = registry.entries(tasks.now());
  for (const auto& [name, kept] : catalogue.rows().servers()) list.dead.push_back(kept.row);
  if (const auto row = catalogue.rows().region(meta_region().id)) list.meta = *row;
  list.epoch = epoch;
  return list;
}

void Master::Parts::end(const Status& why) {
  if (std::exchange(is_ended, true)) return;
  say(LogLevel::kError, "the master ends: " + why.to_string());
  on_end(why);
}

// Somebody has named a later epoch. Anybody may, also a server of another cluster that listens
// where one of this cluster did. But a successor has written its epoch before it spoke to anybody.
void Master::Parts::look_for_successor() {
  if (std::exchange(looks_for_successor, true)) return;
  recovery_work.run([this, &files = files, path = state_file(layout), post = tasks.poster()] {
    const auto state = LocalState::open(files, path);
    post([this, read = state.status(), there = state.ok() ? state->contents().epoch : 0] {
      looks_for_successor = false;
      if (there <= epoch) return warn_of_later_epoch(read);
      end(Status(
          StatusCode::kFenced,
          fmt::format("a master with epoch {} has begun, and this one has {}", there, epoch)));
    });
  });
}

void Master::Parts::warn_of_later_epoch(const Status& read) {
  if (warn_again_at > tasks.now()) return;
  warn_again_at = tasks.now() + kWarningPause;
  say(LogLevel::kWarning,
      fmt::format("a server says that it has heard a master with a later epoch than {}, but {}.* "
                  "{}; until that ends, calls to the server are repeated. If a server of "
                  "another cluster listens at an address of this one, move it. If the file was "
                  "restored from a backup, start the region servers again",
                  epoch, state_file(layout),
                  read.ok() ? "names none" : "cannot be read: " + read.to_string()));
}

Master::Master(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Master::~Master() {
  // First nothing comes in; then procedures end, which the loop serves; then the parts go.
  parts_->server.reset();
  parts_->cleaner.end();
  parts_->executor->stop();
  // The executor and the watch go before these, whose tasks ask them.
  parts_->server_calls.end();
  parts_->peer_storage.end();
  parts_->meta.end();
  parts_->catalogue.end();
  parts_->dispatcher.end();
  parts_->tasks.end();
}

const std::string& Master::address() const noexcept { return parts_->server->address(); }
std::uint64_t Master::epoch() const noexcept { return parts_->epoch; }
ProcedureExecutor& Master::executor() noexcept { return *parts_->executor; }

bool Master::is_online() const {
  bool is_online = false;
  run_on_loop(*parts_->transport, [&] { is_online = parts_->catalogue.is_online(); });
  return is_online;
}

const CatalogueState& Master::rows() const { return parts_->catalogue.rows(); }

ServerList Master::servers() const {
  ServerList list;
  run_on_loop(*parts_->transport, [&] { list = parts_->list_servers(); });
  return list;
}

}  // namespace pv2::cluster
