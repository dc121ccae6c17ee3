// SPDX-License-Identifier: Apache-2.0
//
// The order of the start is: logs, replication, network, master. What the master may ask for is
// there before it hears of the server.

#include "server/region_server.h"

#include <pv2/base/fields.h>
#include <pv2/rpc/rpc_server.h>

#include <algorithm>
#include <utility>

#include "server/dispatch_desk.h"
#include "server/graceful_stop.h"
#include "server/heartbeat_sender.h"
#include "server/master_transport.h"
#include "server/operations.h"
#include "server/region_methods.h"
#include "server/region_nonces.h"
#include "server/region_orders.h"
#include "server/region_table.h"
#include "server/region_upkeep.h"
#include "server/report_sender.h"
#include "wire/message_bytes.h"
#include "wire/methods.h"
#include "wire/option_limits.h"
#include "wire/server_messages.h"

namespace pv2::cluster {
namespace {

// A write of kWriteBytesMax, with room for what frames and fields add.
constexpr std::size_t kFrameBytesMax = std::size_t{16} << 20;

}  // namespace

/// In the order in which they need each other.
struct RegionServer::Parts {
  Parts(RegionServerOptions options, ServerName name, const ServerGround& ground,
        std::unique_ptr<ServerLog> user_log, std::shared_ptr<MasterTransport> to_master,
        std::unique_ptr<RpcClient> master_client)
      : context(std::move(options), std::move(name), ground.transport, *ground.clock, ground.files,
                ground.queues, ground.on_end),
        clock(ground.clock),
        logs{std::move(user_log), nullptr},
        nonces({.clock = ground.clock,
                .retention = context.options.nonce_retention,
                .bytes_max = context.options.nonce_bytes_max}),
        master_transport(std::move(to_master)),
        master(std::move(master_client)) {}

  Status open_replication(const ServerGround& ground);
  Status listen(const std::shared_ptr<Transport>& transport);
  [[nodiscard]] ServerStatus status() const {
    return {context.name, context.epoch.greatest(), table.status(),
            replication ? replication->status() : std::vector<PeerStatus>(), ""};
  }
  void answer_status(IncomingCall& call) const;

  ServerContext context;
  const std::shared_ptr<Clock> clock;  // the context and others refer to it
  OwnLogs logs;
  RegionNonces nonces;
  RegionTable table;
  RegionUpkeep upkeep{context, table, nonces};
  RegionMethods methods{context, table, upkeep, nonces};
  const std::shared_ptr<MasterTransport> master_transport;
  const std::unique_ptr<RpcClient> master;
  std::unique_ptr<ReplicationHost> replication;
  RegionOrders orders{context, table, logs, nonces};
  ReportSender reports{context, *master};
  // Made when there is replication, or when there is an address:
  std::unique_ptr<Operations> operations;
  std::unique_ptr<DispatchDesk> desk;
  std::unique_ptr<RpcServer> server;
  std::unique_ptr<HeartbeatSender> heartbeat;
  std::unique_ptr<GracefulStop> graceful_stop;
};

Result<std::uint64_t> choose_start_code(const FileTree& files, const ClusterLayout& layout,
                                        const std::string& host, WallTime now) {
  const auto names = files.list(layout.wals());
  if (!names.ok()) return names.status();
  auto code = static_cast<std::uint64_t>(now.time_since_epoch().count());
  for (const std::string& name : *names) {
    const auto directory = ClusterLayout::parse_log_directory(name);
    if (!directory || directory->server.host != host) continue;
    code = std::max(code, directory->server.start_code + 1);
  }
  return code;
}

Result<std::unique_ptr<RegionServer>> RegionServer::start(RegionServerOptions options,
                                                          ServerGround ground) {
  if (Status bad = check_server_name({options.host, 0}); !bad.ok()) return bad;
  if (Status bad = check_options(options); !bad.ok()) return bad;
  const ClusterLayout layout(options.root);
  const auto code = choose_start_code(ground.files, layout, options.host, ground.clock->wall_now());
  if (code.status().code() == StatusCode::kUnavailable) {
    return code.status().with_context("no master has begun a cluster in " + layout.root() +
                                      ", or it cannot be seen");
  }
  if (!code.ok()) return code.status();
  ServerName name{options.host, *code};
  auto log = ServerLog::open(ground.files, layout, ground.queues.log, name,
                             {.kind = LogKind::kUser, .file_bytes_max = options.log_bytes_max});
  if (!log.ok()) return log.status();

  auto to_master = std::make_shared<MasterTransport>(
      ground.transport,
      [&files = ground.files, path = layout.master_address()] { return files.read(path); },
      ground.looks);
  auto master = RpcClient::open({.transport = to_master,
                                 .addresses = {std::string(kMasterAddress)},
                                 .seed = name.start_code | 1});
  if (!master.ok()) return master.status();

  auto parts = std::make_unique<Parts>(std::move(options), std::move(name), ground, *std::move(log),
                                       std::move(to_master), *std::move(master));
  if (Status bad = parts->open_replication(ground); !bad.ok()) return bad;
  if (Status bad = parts->listen(ground.transport); !bad.ok()) return bad;
  std::unique_ptr<RegionServer> server(new RegionServer(std::move(parts)));
  run_on_loop(*ground.transport, [&parts = *server->parts_] {
    // A peer may have been added between the server's first look at the peers and its registration.
    parts.heartbeat->start([&parts] {
      if (parts.replication) parts.replication->prepare([](const Status&) {});
    });
    parts.upkeep.start();
  });
  return server;
}

Status RegionServer::Parts::open_replication(const ServerGround& ground) {
  if (ground.make_replication) {
    auto host = ground.make_replication(
        {.server = context.name,
         .files = context.files,
         .layout = context.layout,
         .log = *logs.user,
         .work = ground.replication_work ? *ground.replication_work : context.queues.regions,
         .transport = ground.transport,
         .clock = clock,
         .check_lease = [this] { return context.check_lease(); },
         .say = context.options.log,
         .make_peer_queue = ground.make_peer_queue,
         .peer_ends = ground.peer_ends});
    if (!host.ok()) return host.status().with_context("replication");
    replication = *std::move(host);
    orders.set_replication(replication.get());
  }
  operations = std::make_unique<Operations>(context, orders, replication.get());
  desk = std::make_unique<DispatchDesk>(context, *operations, reports);
  return {};
}

Status RegionServer::Parts::listen(const std::shared_ptr<Transport>& transport) {
  RpcServerOptions options{.transport = transport,
                           .address = context.options.listen,
                           .limits = {.frame_bytes_max = kFrameBytesMax},
                           .log = context.options.log};
  methods.add_to(options.methods);
  desk->add_to(options.methods);
  options.methods[std::string(kServerStatus)] = [this](IncomingCall call) { answer_status(call); };
  auto opened = RpcServer::open(std::move(options));
  if (!opened.ok()) return opened.status();
  server = *std::move(opened);
  heartbeat = std::make_unique<HeartbeatSender>(context, table, *master, *master_transport,
                                                server->address());
  context.ask_master = [this] { heartbeat->ask(); };
  graceful_stop = std::make_unique<GracefulStop>(context, table, orders, *heartbeat);
  return {};
}

void RegionServer::Parts::answer_status(IncomingCall& call) const {
  StatusRequest request;
  const Status bad = decode_fields(request, FieldSelection::kAll, call.body());
  if (!bad.ok()) {
    return call.fail({StatusCode::kInvalidArgument, "not a message: " + bad.to_string()});
  }
  ServerStatus status = this->status();
  if (!request.start_region.empty()) status.peers.clear();  // they were in the first part
  const auto first = std::ranges::lower_bound(
      status.regions, request.start_region, {},
      [](const RegionStatus& region) -> const std::string& { return region.region.id; });
  status.regions.erase(status.regions.begin(), first);
  MessageBytes bytes;
  const auto rest = std::ranges::find_if_not(
      status.regions, [&](const RegionStatus& region) { return bytes.add(region); });
  if (rest != status.regions.end()) status.next_region = rest->region.id;
  status.regions.erase(rest, status.regions.end());
  std::string body;
  encode_fields(status, FieldSelection::kAll, body);
  call.reply(body);
}

RegionServer::RegionServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

RegionServer::~RegionServer() {
  // First nothing comes in, then nothing is called any more, then the parts go.
  parts_->server.reset();
  parts_->context.tasks.end();
  parts_->nonces.stop();
}

void RegionServer::stop(std::function<void()> done) {
  parts_->context.tasks.post(
      [&parts = *parts_, done = std::move(done)] { parts.graceful_stop->begin(done); });
}

const ServerName& RegionServer::name() const noexcept { return parts_->context.name; }
const std::string& RegionServer::address() const noexcept { return parts_->server->address(); }

ServerStatus RegionServer::status() const {
  ServerStatus status;
  run_on_loop(parts_->context.tasks.transport(), [&] { status = parts_->status(); });
  return status;
}

bool RegionServer::is_ended() const {
  bool is_ended = false;
  run_on_loop(parts_->context.tasks.transport(), [&] { is_ended = parts_->context.is_ended(); });
  return is_ended;
}

}  // namespace pv2::cluster
