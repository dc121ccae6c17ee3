// SPDX-License-Identifier: Apache-2.0
//
// Each operation may be repeated: the storage sees to it for logs, the orders for regions.

#include "server/operations.h"

#include <pv2/procedures/server_logs.h>

#include <string>
#include <utility>

#include "server/region_orders.h"
#include "server/replication_host.h"
#include "storage/log_splitter.h"
#include "wire/log_name.h"

namespace pv2::cluster {
namespace {

Status split(const FileTree& files, const ClusterLayout& layout, const RemoteOperation& operation) {
  const auto log = parse_log_name(operation.log);
  if (!log) return {StatusCode::kInvalidArgument, "'" + operation.log + "' names no log"};
  const auto count = cluster::split_log(files, layout, operation.dead, *log);
  if (count.ok()) return {};
  // The record that a log is split is that it was archived.
  if (count.status().code() == StatusCode::kNotFound &&
      files.exists(layout.old_wal(operation.dead, log->name, log->size))) {
    return {};
  }
  return count.status();
}

}  // namespace

std::string Operations::line_of(const RemoteOperation& operation) {
  switch (operation.kind) {
    case RemoteKind::kOpenRegion:
    case RemoteKind::kCloseRegion:
      return "region " + operation.region.id;
    case RemoteKind::kRefreshPeer:
    case RemoteKind::kClaimQueues:
      return "peer " + operation.peer;
    case RemoteKind::kSplitLog:
      // Without the size: two splits of one log share a draft, whatever they read of it.
      return "log " + to_string(operation.dead) + " " + std::string(file_of(operation.log));
  }
  return "operation " + operation.effect_key;
}

void Operations::run(const Order& order, Report report) {
  const RemoteOperation& operation = order.operation;
  switch (operation.kind) {
    case RemoteKind::kOpenRegion:
      return regions_.open(order, std::move(report));
    case RemoteKind::kCloseRegion:
      return regions_.close(order, std::move(report));
    case RemoteKind::kSplitLog:
      return split_log(operation, std::move(report));
    case RemoteKind::kRefreshPeer:
    case RemoteKind::kClaimQueues:
      return ask_replication(operation, std::move(report));
  }
  report(report_of(operation, {StatusCode::kNotSupported, "this server knows no such operation"}));
}

void Operations::settled(const Order& order, ReportSender::Verdict verdict) {
  if (order.operation.kind == RemoteKind::kOpenRegion) regions_.opened(order, verdict);
}

void Operations::split_log(const RemoteOperation& operation, Report report) {
  context_.queues.operations.run(
      [operation, &context = context_, post = context_.tasks.poster(), report = std::move(report)] {
        const Status status = split(context.files, context.layout, operation);
        post([operation, status, report] { report(report_of(operation, status)); });
      });
}

void Operations::ask_replication(const RemoteOperation& operation, Report report) {
  if (replication_ == nullptr) {
    return report(report_of(operation, {StatusCode::kNotSupported, "no replication here"}));
  }
  auto done = [operation, report = std::move(report),
               post = context_.tasks.poster()](const Status& status) {
    post([operation, report, status] { report(report_of(operation, status)); });
  };
  if (operation.kind == RemoteKind::kRefreshPeer) {
    return replication_->refresh_peer(operation.peer, std::move(done));
  }
  replication_->claim_queues(operation.dead, operation.peer, std::move(done));
}

}  // namespace pv2::cluster
