// SPDX-License-Identifier: Apache-2.0
//
// Each call is one task on the loop.

#include "master/server_calls_port.h"

#include <algorithm>
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

void ServerCallsPort::wait_for(ServerName server, Predicate is_so, Completion<Status> done) {
  tasks_.post([this, server = std::move(server), waiting = Waiting{is_so, std::move(done)}] {
    if (waiting.is_so(catalogue_.rows().server(server))) return waiting.done(Status());
    add(server, waiting);
  });
}

void ServerCallsPort::add(const ServerName& server, Waiting waiting) {
  Line& line = lines_[server];
  line.waiting.push_back(std::move(waiting));
  if (line.waiting.size() < line.look_at) return;
  std::erase_if(line.waiting, [](const Waiting& entry) { return !entry.done.is_awaited(); });
  // So each wait is looked at twice on average.
  line.look_at = std::max<std::size_t>(64, 2 * line.waiting.size());
}

void ServerCallsPort::server_changed(const ServerName& server) {
  const auto found = lines_.find(server);
  if (found == lines_.end()) return;
  const ServerRow row = catalogue_.rows().server(server);
  std::erase_if(found->second.waiting, [&row](const Waiting& entry) {
    if (!entry.is_so(row)) return false;
    entry.done(Status());
    return true;
  });
  if (found->second.waiting.empty()) lines_.erase(found);
}

std::size_t ServerCallsPort::waiting() const {
  std::size_t count = 0;
  for (const auto& [server, line] : lines_) count += line.waiting.size();
  return count;
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
