// SPDX-License-Identifier: Apache-2.0
//
// ServerLogsPort: the port ServerLogs over the directories of logs. A log's name in the port also
// says how much of it is to be split (log_name.h).

#pragma once

#include <pv2/procedures/server_logs.h>

#include <string>

#include "master/probe.h"
#include "storage/log_directories.h"
#include "storage/work_queue.h"

namespace pv2::cluster {

/// Thread-safe. The references outlive it and what it has put in the queue.
class ServerLogsPort final : public ServerLogs {
 public:
  ServerLogsPort(const LogDirectories& directories, WorkQueue& queue, const Probe& probe)
      : directories_(directories), queue_(queue), probe_(probe) {}

  void fence(ServerName server, Completion<Status> done) override;
  void logs_of(ServerName server, pv2::LogKind kind,
               Completion<Result<std::vector<std::string>>> done) override;
  void archive(ServerName server, std::string log, Completion<Status> done) override;
  void remove(ServerName server, Completion<Status> done) override;

 private:
  const LogDirectories& directories_;
  WorkQueue& queue_;
  const Probe& probe_;
};

}  // namespace pv2::cluster
