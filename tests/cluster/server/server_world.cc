// SPDX-License-Identifier: Apache-2.0
//
// The master of the test is simple: it waits for each step, and keeps its rows in memory as well.

#include "cluster/server/server_world.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "storage/log_directories.h"
#include "storage/table_directories.h"
#include "wire/catalogue_rows.h"
#include "wire/log_name.h"
#include "wire/methods.h"

namespace pv2::testing::server_world {

using namespace pv2::cluster;  // NOLINT: this namespace is the world's own

RegionInfo whole_table(const TableName& table, const std::string& id) {
  return {.table = table, .id = id, .start_key = "", .end_key = ""};
}

ServerWorld::ServerWorld() {
  REQUIRE(files.make_directories("root/master").ok());
  REQUIRE(files.write("root/master/id", "id").ok());
  start_master(1);
}

ServerWorld::~ServerWorld() {
  master_.reset();
  while (!processes_.empty()) kill(processes_.begin()->first);
}

ServerName ServerWorld::start(const std::string& host,
                              std::function<void(RegionServerOptions&)> tune) {
  auto process = std::make_unique<ServerProcess>(files);
  RegionServerOptions options{.host = host, .root = "root", .listen = host + ":0"};
  options.log = [](LogLevel, std::string_view) {};
  if (tune) tune(options);
  auto started = RegionServer::start(
      options, {.transport = transport,
                .clock = clock,
                .files = files,
                .queues = {process->work, process->calls, process->work, process->work,
                           process->meta_log, process->meta, process->meta},
                .on_end = [end = &process->end](const Status& why) { *end = why; },
                .make_replication =
                    [&check = process->check_lease](const ReplicationGround& ground) {
                      check = ground.check_lease;
                      return Result<std::unique_ptr<ReplicationHost>>(nullptr);
                    }});
  REQUIRE(started.status().to_string() == "OK");
  process->server = *std::move(started);
  const std::string address = process->server->address();
  auto proxy = FaultProxy::open({.transport = transport.get(),
                                 .listen = "proxy-" + host + ":0",
                                 .target = address,
                                 .plan = plan});
  REQUIRE(proxy.ok());
  process->proxy = *std::move(proxy);
  auto link = RpcClient::open({.transport = transport, .addresses = {address}, .seed = 3});
  REQUIRE(link.ok());
  process->link = *std::move(link);
  const ServerName name = process->server->name();
  processes_[name] = std::move(process);
  run_until([&] { return master_ == nullptr || registered_.contains(name); });
  return name;
}

void ServerWorld::kill(const ServerName& given) {
  const ServerName name = given;
  const auto process = std::move(processes_.at(name));
  processes_.erase(name);
  process->link.reset();
  process->proxy.reset();
  process->work.clear();
  process->calls.clear();
  process->server.reset();
}

ServerProcess& ServerWorld::process(const ServerName& name) { return *processes_.at(name); }

std::vector<ServerName> ServerWorld::live() const {
  std::vector<ServerName> names;
  for (const auto& [name, process] : processes_) {
    if (!dead.contains(name) && !process->end) names.push_back(name);
  }
  return names;
}

void ServerWorld::start_master(std::uint64_t new_epoch) {
  epoch = new_epoch;
  RpcServerOptions options{.transport = transport, .address = "master:0"};
  options.log = [](LogLevel, std::string_view) {};
  options.methods[std::string(kMasterHeartbeat)] = [this](IncomingCall call) {
    heartbeat(std::move(call));
  };
  options.methods[std::string(kMasterReport)] = [this](IncomingCall call) {
    report(std::move(call));
  };
  options.methods[std::string(kMasterServers)] = [this](IncomingCall call) {
    call.reply(encoded(list_servers()));
  };
  auto opened = RpcServer::open(std::move(options));
  REQUIRE(opened.ok());
  master_ = *std::move(opened);
  registered_.clear();
  REQUIRE(files.write("root/master/address", master_->address()).ok());
}

void ServerWorld::heartbeat(IncomingCall call) {
  Heartbeat message;
  REQUIRE(decode_fields(message, FieldSelection::kAll, call.body()).ok());
  ++heartbeats;
  registered_[message.server] = message.address;
  if (message.leaving) left.insert(message.server);
  call.reply(encoded(HeartbeatReply{epoch, lease, dead.contains(message.server)}));
}

void ServerWorld::report(IncomingCall call) {
  ReportRequest request;
  REQUIRE(decode_fields(request, FieldSelection::kAll, call.body()).ok());
  reported_epoch = request.epoch;
  ReportReply reply;
  bool is_swallowed = false;
  for (const auto& item : request.items) {
    reports.push_back(item.report);
    if (swallows && swallows(item.report)) is_swallowed = true;
    reply.verdicts.push_back(dead.contains(item.report.server) ? Verdict::kDead
                             : verdict                         ? verdict(item.report)
                                                               : Verdict::kTaken);
  }
  if (is_swallowed) return call.refuse({StatusCode::kUnavailable, "no answer"});
  call.reply(encoded(reply));
}

ServerList ServerWorld::list_servers() {
  ServerList list;
  list.epoch = epoch;
  for (const auto& [name, address] : registered_) {
    const auto found = processes_.find(name);
    if (found == processes_.end() || dead.contains(name)) continue;
    list.live.push_back({.name = name, .address = found->second->proxy->address()});
  }
  const auto meta = rows.find(meta_region().id);
  if (meta != rows.end()) list.meta = meta->second;
  return list;
}

CallOutcome ServerWorld::call(const ServerName& to, std::string_view method, std::string body,
                              CallOptions options) {
  return answer<CallOutcome>([&](std::function<void(CallOutcome)> done) {
    process(to).link->call(std::string(method), std::move(body), std::move(options),
                           std::move(done));
  });
}

CallOutcome ServerWorld::try_dispatch(const ServerName& to, std::vector<RemoteOperation> operations,
                                      std::uint64_t by_epoch) {
  const std::uint64_t first = std::exchange(next_order_, next_order_ + operations.size());
  return call(to, kServerDispatch, encoded(DispatchRequest{by_epoch, std::move(operations), first}),
              {.read_only = true, .timeout = std::chrono::seconds(5)});
}

DispatchReply ServerWorld::dispatch(const ServerName& to, std::vector<RemoteOperation> operations,
                                    std::optional<std::uint64_t> by_epoch) {
  const CallOutcome outcome = try_dispatch(to, std::move(operations), by_epoch.value_or(epoch));
  REQUIRE(to_string(outcome).starts_with("OK"));
  DispatchReply reply;
  REQUIRE(decode_fields(reply, FieldSelection::kAll, outcome.body).ok());
  return reply;
}

RemoteOperation ServerWorld::order(RemoteKind kind, const ServerName& server,
                                   const RegionInfo& region) {
  const std::uint64_t id = next_procedure_++;
  RemoteOperation operation{.kind = kind,
                            .server = server,
                            .procedure = ProcedureId{id},
                            .effect_key = "effect-" + std::to_string(id),
                            .region = region};
  const auto row = rows.find(region.id);
  if (row != rows.end()) operation.sequence = row->second.open_sequence;
  return operation;
}

RemoteReport ServerWorld::report_of(const RemoteOperation& operation) {
  const auto find = [&] {
    return std::ranges::find(reports, operation.effect_key, &RemoteReport::effect_key);
  };
  run_until([&] { return find() != reports.end(); });
  settle();  // the server hears the verdict
  return *find();
}

void ServerWorld::make_table(const TableName& table, const std::vector<std::string>& families,
                             const std::vector<RegionInfo>& regions) {
  const TableDirectories tables(files, layout);
  REQUIRE(tables.make_namespace(table.name_space).ok());
  REQUIRE(tables.write_layout({table, families}, regions).to_string() == "OK");
}

void ServerWorld::write_row(const RegionRow& row) {
  rows[row.region.id] = row;
  if (is_meta(row.region.table)) return;
  const auto meta = rows.find(meta_region().id);
  if (meta == rows.end() || !processes_.contains(meta->second.server)) return;
  WriteRequest request{
      meta_region().id, {put_row(CatalogueState::Kept<RegionRow>{row, ""})}, epoch};
  const CallOutcome outcome = call(meta->second.server, kRegionWrite, encoded(std::move(request)),
                                   {.nonce = nonces_.next(), .timeout = std::chrono::minutes(1)});
  REQUIRE(to_string(outcome).starts_with("OK"));
}

void ServerWorld::open(const RegionInfo& region, const ServerName& server) {
  const RemoteOperation operation = order(RemoteKind::kOpenRegion, server, region);
  REQUIRE(dispatch(server, {operation}).answers.at(0).accepted);
  const RemoteReport report = report_of(operation);
  INFO(report.reason);
  REQUIRE(report.done);
  REQUIRE(report.sequence > operation.sequence);
  write_row({region, RegionState::kOpen, server, report.sequence});
}

void ServerWorld::close(const RegionInfo& region) {
  RegionRow row = rows.at(region.id);
  const RemoteOperation operation = order(RemoteKind::kCloseRegion, row.server, region);
  REQUIRE(dispatch(row.server, {operation}).answers.at(0).accepted);
  REQUIRE(report_of(operation).done);
  row.state = RegionState::kClosed;
  write_row(row);
}

void ServerWorld::move(const RegionInfo& region, const ServerName& to) {
  close(region);
  open(region, to);
}

std::vector<RegionInfo> ServerWorld::split(const RegionInfo& region, const std::string& row) {
  const ServerName server = rows.at(region.id).server;
  close(region);
  std::vector<RegionInfo> daughters(2, region);
  daughters[0].id = "l" + std::to_string(next_procedure_);
  daughters[1].id = "r" + std::to_string(next_procedure_);
  daughters[0].end_key = row;
  daughters[1].start_key = row;
  REQUIRE(TableDirectories(files, layout).make_daughters(region, daughters).to_string() == "OK");
  RegionRow parent = rows.at(region.id);
  parent.state = RegionState::kSplit;
  write_row(parent);
  for (const RegionInfo& daughter : daughters) open(daughter, server);
  return daughters;
}

void ServerWorld::recover(const ServerName& name, const ServerName& worker) {
  dead.insert(name);
  const LogDirectories logs(files, layout);
  REQUIRE(logs.fence(name).to_string() == "OK");
  for (const auto kind : {cluster::LogKind::kMeta, cluster::LogKind::kUser}) {
    const auto left = logs.logs(name, kind);
    REQUIRE(left.ok());
    for (const LogFile& log : *left) {
      RemoteOperation operation = order(RemoteKind::kSplitLog, worker);
      operation.dead = name;
      operation.log = name_log(log);
      REQUIRE(dispatch(worker, {operation}).answers.at(0).accepted);
      const RemoteReport report = report_of(operation);
      INFO(report.reason);
      REQUIRE(report.done);
      REQUIRE(logs.archive(name, log).ok());
    }
  }
  REQUIRE(logs.remove(name).to_string() == "OK");
}

std::vector<RegionInfo> ServerWorld::regions_on(const ServerName& server) const {
  std::vector<RegionInfo> regions;
  for (const auto& [id, row] : rows) {
    if (row.server == server && row.state == RegionState::kOpen) regions.push_back(row.region);
  }
  return regions;
}

std::unique_ptr<ClusterClient> ServerWorld::connect(std::uint64_t seed) {
  auto client =
      ClusterClient::open({.find_master = [this] { return files.read("root/master/address"); },
                           .transport = transport,
                           .clock = clock,
                           .seed = seed});
  REQUIRE(client.ok());
  return *std::move(client);
}

void ServerWorld::settle() {
  bool is_busy = true;
  while (is_busy) {
    is_busy = transport->run_until_idle() != 0;
    for (auto& [name, process] : processes_) {
      if (!process->holds_work) is_busy |= process->work.run_one();
    }
    for (auto& [name, process] : processes_) {
      if (!process->holds_calls) is_busy |= process->calls.run_one();
      is_busy |= process->meta.run_one();
      if (!process->holds_meta_log) is_busy |= process->meta_log.run_one();
    }
  }
}

void ServerWorld::run_until(const std::function<bool()>& done) {
  settle();
  for (int i = 0; i < 30'000 && !done(); ++i) {
    transport->run_for(std::chrono::milliseconds(10));
    settle();
  }
  REQUIRE(done());
}

void ServerWorld::run_for(Duration time) {
  const SteadyTime end = clock->steady_now() + time;
  while (clock->steady_now() < end) {
    transport->run_for(std::chrono::milliseconds(10));
    settle();
  }
}

}  // namespace pv2::testing::server_world
