// SPDX-License-Identifier: Apache-2.0
//
// Commands that start, stop, pause and kill the processes of the cluster, to see what it makes of
// that. Only for a shell that has started the cluster.

#include <fmt/format.h>
#include <pv2/cluster/cluster_processes.h>
#include <pv2/procedures/table.h>

#include <array>

#include "commands/call.h"
#include "commands/subjects.h"
#include "language/escape.h"
#include "session/known_servers.h"
#include "session/shell.h"

namespace pv2::shell {
namespace {

/// 'rs1' of 'rs1' and of 'rs1,1700000000'.
std::string host_of(const Call& call) {
  const std::string& text = call.text(0);
  return text.substr(0, text.find(','));
}

/// The process on a host. kNotFound: none runs there.
Result<cluster::ChildProcess*> server_of(Shell& shell, const Call& call) {
  const auto processes = shell.processes();
  if (!processes.ok()) return processes.status();
  cluster::ChildProcess* const process = (*processes)->server(host_of(call));
  if (process != nullptr) return process;
  return Status(StatusCode::kNotFound,
                "no region server runs on " + in_quotes(host_of(call)) + "; servers lists them");
}

Answer kill_server(Shell& shell, const Call& call) {
  const auto process = server_of(shell, call);
  if (!process.ok()) return process.status();
  const Status killed = (*shell.processes())->kill_server(host_of(call));
  if (!killed.ok()) return killed;
  return said(fmt::format("region server {} is killed", host_of(call)));
}

Answer start_server(Shell& shell, const Call& call) {
  const auto processes = shell.processes();
  if (!processes.ok()) return processes.status();
  if (Status bad = check_server_name({host_of(call), 0}); !bad.ok()) return bad;
  const Result<ServerName> name = (*processes)->start_server(host_of(call));
  if (!name.ok()) return name.status();
  if ((*processes)->master_lives() && wait_until_known(shell.client(), std::array{*name})) {
    return said(fmt::format("region server {} is live", to_string(*name)));
  }
  return said(fmt::format("region server {} listens; no master knows it yet", to_string(*name)));
}

Answer stop_server(Shell& shell, const Call& call) {
  const auto process = server_of(shell, call);
  if (!process.ok()) return process.status();
  shell.progress().show("the server closes its regions");
  (*process)->resume();  // one that is paused would never end
  (*process)->finish();
  return said(fmt::format("region server {} has ended", host_of(call)));
}

Answer pause_server(Shell& shell, const Call& call) {
  const auto process = server_of(shell, call);
  if (!process.ok()) return process.status();
  (*process)->pause();
  return said(fmt::format("region server {} is paused; it does not know it", host_of(call)));
}

Answer resume_server(Shell& shell, const Call& call) {
  const auto process = server_of(shell, call);
  if (!process.ok()) return process.status();
  (*process)->resume();
  return said(fmt::format("region server {} goes on", host_of(call)));
}

Answer kill_master(Shell& shell, const Call& /*call*/) {
  const auto processes = shell.processes();
  if (!processes.ok()) return processes.status();
  if (!(*processes)->master_lives()) {
    return Status(StatusCode::kNotFound, "no master runs; start_master starts one");
  }
  (*processes)->kill_master();
  return said("the master is killed");
}

Answer start_master(Shell& shell, const Call& /*call*/) {
  const auto processes = shell.processes();
  if (!processes.ok()) return processes.status();
  const Status started = (*processes)->start_master();
  if (!started.ok()) return started;
  return said("a master listens");
}

Command about_server(std::string_view name, std::string_view summary, std::string_view example,
                     Answer (*run)(Shell&, const Call&)) {
  return {.name = name,
          .group = "processes",
          .summary = summary,
          .example = example,
          .arguments = {{"server", Takes::kServer}},
          .run = run};
}

}  // namespace

void add_process_commands(std::vector<Command>& table) {
  table.push_back(
      about_server("kill_server", "Kills a region server.", "kill_server 'rs1'", kill_server));
  table.push_back(about_server("start_server", "Starts a region server on a host of that name.",
                               "start_server 'rs4'", start_server));
  table.push_back(about_server("stop_server", "Has a region server close its regions and end.",
                               "stop_server 'rs1'", stop_server));
  table.push_back(about_server("pause_server", "Stops a region server where it is (SIGSTOP).",
                               "pause_server 'rs1'", pause_server));
  table.push_back(about_server("resume_server", "Lets a paused region server go on (SIGCONT).",
                               "resume_server 'rs1'", resume_server));
  table.push_back({.name = "kill_master",
                   .group = "processes",
                   .summary = "Kills the master; what it has accepted goes on in the next one.",
                   .example = "kill_master",
                   .run = kill_master});
  table.push_back({.name = "start_master",
                   .group = "processes",
                   .summary = "Starts a master.",
                   .example = "start_master",
                   .run = start_master});
}

}  // namespace pv2::shell
