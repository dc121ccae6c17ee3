// SPDX-License-Identifier: Apache-2.0
//
// Each call as work on the queue.

#include "master/server_logs_port.h"

#include <utility>
#include <vector>

#include "wire/log_name.h"

namespace pv2::cluster {

void ServerLogsPort::fence(ServerName server, Completion<Status> done) {
  queue_.run([this, server = std::move(server), done] { done(directories_.fence(server)); });
}

void ServerLogsPort::logs_of(ServerName server, pv2::LogKind kind,
                             Completion<Result<std::vector<std::string>>> done) {
  queue_.run([this, server = std::move(server), kind, done] {
    const LogKind stored = kind == pv2::LogKind::kMeta ? LogKind::kMeta : LogKind::kUser;
    const Result<std::vector<LogFile>> logs = directories_.logs(server, stored);
    if (!logs.ok()) return done(Result<std::vector<std::string>>(logs.status()));
    std::vector<std::string> names;
    for (const LogFile& log : *logs) names.push_back(name_log(log));
    probe_.done(ClusterCall::kLogsOf);
    done(Result<std::vector<std::string>>(std::move(names)));
  });
}

void ServerLogsPort::archive(ServerName server, std::string log, Completion<Status> done) {
  queue_.run([this, server = std::move(server), log = std::move(log), done] {
    const std::optional<LogFile> file = parse_log_name(log);
    if (!file) {
      return done(Status(StatusCode::kInvalidArgument, "'" + log + "' is no name of a log"));
    }
    done(directories_.archive(server, *file));
  });
}

void ServerLogsPort::remove(ServerName server, Completion<Status> done) {
  queue_.run([this, server = std::move(server), done] { done(directories_.remove(server)); });
}

}  // namespace pv2::cluster
