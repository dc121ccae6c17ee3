// SPDX-License-Identifier: Apache-2.0
//
// SimpleCluster: a real directory with one table of one region, and a master of three methods: it
// lists the server as the host of the catalogue, takes every report, and hears that a server
// leaves. For tests of one server with real sockets and threads.

#pragma once

#include <pv2/base/fields.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/procedures/init_meta.h>
#include <pv2/rpc/rpc_client.h>
#include <pv2/rpc/rpc_server.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "storage/cluster_layout.h"
#include "storage/file_tree.h"
#include "storage/table_directories.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "wire/catalogue_rows.h"
#include "wire/methods.h"
#include "wire/region_messages.h"
#include "wire/server_messages.h"

namespace pv2::testing::simple_cluster {

/// What is set by the master is set on the loop of its transport.
class SimpleCluster {
 public:
  SimpleCluster() {
    const cluster::TableDirectories tables(files, layout);
    REQUIRE(tables.make_namespace("default").ok());
    REQUIRE(tables.make_namespace("system").ok());
    REQUIRE(tables.write_layout({region.table, {"f"}}, {region}).ok());
    REQUIRE(tables.write_layout(meta_descriptor(), {meta_region()}).ok());
    REQUIRE(files.make_directories(layout.master()).ok());
    REQUIRE(files.write(layout.cluster_id(), "id").ok());
  }

  /// Starts the master.
  void serve(const std::shared_ptr<Transport>& transport) {
    using namespace cluster;  // NOLINT: the layer under test
    RpcServerOptions options{.transport = transport};
    options.methods[std::string(kMasterHeartbeat)] = [this](IncomingCall call) {
      Heartbeat message;
      const bool good = decode_fields(message, FieldSelection::kAll, call.body()).ok();
      if (good && server.name.empty()) {
        server = {.name = message.server, .address = message.address};
        registered.set_value(message.server);
      }
      if (good && message.leaving) has_left = true;
      call.reply(encoded(HeartbeatReply{1, std::chrono::seconds(10), false}));
    };
    options.methods[std::string(kMasterReport)] = [this](IncomingCall call) {
      ReportRequest request;
      const bool good = decode_fields(request, FieldSelection::kAll, call.body()).ok();
      ReportReply reply;
      for (const auto& item : request.items) {
        if (good && item.report.done) ++taken;
        reply.verdicts.push_back(ReportReply::Verdict::kTaken);
      }
      call.reply(encoded(reply));
    };
    options.methods[std::string(kMasterServers)] = [this](IncomingCall call) {
      ServerList list;
      list.live = {server};
      list.meta = {meta_region(), RegionState::kOpen, server.name, 1};
      call.reply(encoded(list));
    };
    auto opened = RpcServer::open(std::move(options));
    REQUIRE(opened.ok());
    master = *std::move(opened);
    REQUIRE(files.write(layout.master_address(), master->address()).ok());
  }

  /// Gives the server the catalogue and the table; returns when both can be used.
  void open_regions(const std::shared_ptr<Transport>& transport) {
    using namespace cluster;  // NOLINT: the layer under test
    auto link = RpcClient::open({.transport = transport, .addresses = {server.address}});
    REQUIRE(link.ok());
    DispatchRequest orders{.epoch = 1, .operations = {}, .first = 1};
    for (const RegionInfo& each : {meta_region(), region}) {
      const std::uint64_t id = orders.operations.size() + 1;
      orders.operations.push_back({.kind = RemoteKind::kOpenRegion,
                                   .server = server.name,
                                   .procedure = ProcedureId{id},
                                   .effect_key = std::to_string(id),
                                   .region = each});
    }
    REQUIRE((*link)->call(std::string(kServerDispatch), encoded(orders), {.read_only = true}).ok());
    CatalogueState::Kept<RegionRow> row{{region, RegionState::kOpen, server.name, 1}, ""};
    WriteRequest put{meta_region().id, {put_row(row)}, 1};
    // Asks again until the region of the catalogue is served.
    REQUIRE((*link)->call(std::string(kRegionWrite), encoded(put), {.nonce = {1, 1}}).ok());
  }

  const TemporaryDirectory directory;
  const std::string root = directory.path("cluster");
  const cluster::FileTree files = cluster::FileTree::real("test");
  const cluster::ClusterLayout layout{root};
  const RegionInfo region{{"default", "t"}, "r1", "", ""};

  std::promise<ServerName> registered;
  cluster::ServerEntry server;
  std::atomic<int> taken{0};  ///< Reports of success.
  std::atomic<bool> has_left{false};
  std::unique_ptr<RpcServer> master;

 private:
  template <class T>
  static std::string encoded(T message) {
    std::string body;
    encode_fields(message, FieldSelection::kAll, body);
    return body;
  }
};

}  // namespace pv2::testing::simple_cluster
