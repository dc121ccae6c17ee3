// SPDX-License-Identifier: Apache-2.0
//
// Each call is one task on the loop.

#include "master/server_calls_port.h"

#include <utility>

namespace pv2::cluster {
namespace {

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
      return ClusterCall::kClaimQueues;
  }
  return ClusterCall::kOpenRegion;
}

bool is_crashed(const ServerRow& row) { return is_dead(row.state); }
bool are_user_logs_split(const ServerRow& row) { return is_recovered(row.state); }
bool are_meta_logs_split(const ServerRow& row) {
  return row.meta_recovered || is_recovered(row.state);
}

}  // namespace

void ServerCallsPort::dispatch(RemoteOperation operation, Completion<DispatchOutcome> done) {
  tasks_.post([this, operation = std::move(operation), done = std::move(done)] {
    probe_.asked(call_of(operation.kind), operation.effect_key);
    dispatcher_.dispatch(operation, done);
  });
}

void ServerCallsPort::live_servers(Completion<Result<std::vector<ServerName>>> done) {
  tasks_.post([this, done = std::move(done)] {
    probe_.asked(ClusterCall::kLiveServers);
    done(Result<std::vector<ServerName>>(registry_.live()));
  });
}

void ServerCallsPort::known_servers(Completion<Result<std::vector<ServerName>>> done) {
  tasks_.post([this, done = std::move(done)] {
    probe_.asked(ClusterCall::kLiveServers);
    done(Result<std::vector<ServerName>>(registry_.known()));
  });
}

void ServerCallsPort::when_crashed(ServerName server, Completion<Status> done) {
  wait_for(std::move(server), is_crashed, std::move(done));
}

void ServerCallsPort::when_recovered(ServerName server, pv2::LogKind kind,
                                     Completion<Status> done) {
  wait_for(std::move(server),
           kind == pv2::LogKind::kMeta ? are_meta_logs_split : are_user_logs_split,
           std::move(done));
}

void ServerCallsPort::wait_for(ServerName server, bool (*is_so)(const ServerRow&),
                               Completion<Status> done) {
  tasks_.post([this, waiting = Waiting{std::move(server), is_so, std::move(done)}] {
    waiting_.push_back(waiting);
    server_changed();
  });
}

void ServerCallsPort::server_changed() {
  std::erase_if(waiting_, [this](const Waiting& entry) {
    if (!entry.is_so(catalogue_.rows().server(entry.server))) return false;
    entry.done(Status());
    return true;
  });
}

void ServerCallsPort::acquire_splitter(ProcedureId procedure, ServerName preferred,
                                       Completion<Result<ServerName>> done) {
  tasks_.post([this, procedure, preferred = std::move(preferred), done = std::move(done)] {
    slots_.acquire(procedure, preferred, done);
  });
}

void ServerCallsPort::release_splitter(ProcedureId procedure) {
  tasks_.post([this, procedure] { slots_.release(procedure); });
}

}  // namespace pv2::cluster
