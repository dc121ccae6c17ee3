// SPDX-License-Identifier: Apache-2.0
//
// The executor's process. Nothing in here is about crashes: it opens, starts, submits and waits.

#include "executor_process.h"

#include <fmt/format.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/local_cluster.h>
#include <pv2/procedures/server_crash.h>
#include <pv2/pv2.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <sstream>

namespace demo {
namespace {

using namespace std::chrono_literals;

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

void say_accepted(const pv2::Result<pv2::Submitted>& submitted) {
  if (!submitted.ok()) return say("refused " + submitted.status().to_string());
  say(fmt::format("accepted {} {}", submitted->id.value, submitted->replayed ? "replayed" : "new"));
}

/// create <group> <nonce> <table> <regions> <family>,...
void create(std::istringstream& words, pv2::ProcedureExecutor& executor, pv2::ClusterPorts& ports) {
  pv2::Nonce nonce;
  pv2::TableDescriptor descriptor;
  std::size_t regions = 1;
  words >> nonce.group >> nonce.value >> descriptor.name.table >> regions;
  words >> std::ws;
  for (std::string family; std::getline(words, family, ',');) descriptor.families.push_back(family);
  say_accepted(
      executor.submit(pv2::CreateTable(ports, std::move(descriptor), pv2::even_split_keys(regions)),
                      {.nonce = nonce, .owner = "demo"}));
}

/// crash <server>
void crash(std::istringstream& words, pv2::ProcedureExecutor& executor, pv2::ClusterPorts& ports) {
  std::string name;
  words >> name;
  const pv2::ServerName server = pv2::parse_server_name(name);
  say_accepted(executor.submit(pv2::ServerCrash(ports, server),
                               {.nonce = pv2::crash_nonce(server), .owner = "demo"}));
}

/// wait <id>
void wait(std::istringstream& words, pv2::ProcedureExecutor& executor) {
  pv2::ProcedureId id;
  words >> id.value;
  const auto result = executor.wait(id);
  if (!result.ok())
    return say("ended " + std::to_string(id.value) + " UNKNOWN " + result.status().to_string());
  say(fmt::format("ended {} {} {}", id.value, to_string(result->state),
                  result->status.ok() ? result->result : result->status.to_string()));
}

int fail(const pv2::Status& status) {
  say("refused " + status.to_string());
  return 1;
}

}  // namespace

int run_executor(const std::string& directory, const KillPoint& kill_point) {
  // When the demo's own process is killed, this one ends too.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);

  KillSwitch kill_switch(kill_point);
  auto cluster = pv2::LocalCluster::open({
      .directory = directory + "/cluster",
      .probe = [&](const pv2::ClusterMoment& moment) { kill_switch.pass(moment); },
  });
  if (!cluster.ok()) return fail(cluster.status());
  pv2::ClusterPorts& ports = (*cluster)->ports();

  pv2::ProcedureRegistry types;
  pv2::add_cluster_procedures(types, ports);
  auto executor = pv2::ProcedureExecutor::open({
      .store = pv2::leveldb(directory + "/store"),
      .registry = types,
      // Failures here last for milliseconds, and a person is watching.
      .retry = {.base = 20ms, .cap = 200ms},
  });
  if (!executor.ok()) return fail(executor.status());
  for (const pv2::ProcedureInfo& info : (*executor)->inspect().list()) {
    if (info.id == info.root) {
      const std::string step = info.step_name.empty() ? "END" : info.step_name;
      say(fmt::format("found {} {} {}", info.id.value, info.type, step));
    }
  }
  (*cluster)->report_to([&](pv2::ProcedureId id, std::string payload,
                            std::function<void(const pv2::Status&)> answer) {
    (*executor)->async().signal(id, std::string(pv2::kReportSignal), std::move(payload),
                                std::move(answer));
  });
  (*executor)->start();
  say("ready");

  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "create") create(words, **executor, ports);
    if (verb == "crash") crash(words, **executor, ports);
    if (verb == "wait") wait(words, **executor);
  }
  (*executor)->stop();  // before the cluster that its procedures use
  return 0;
}

}  // namespace demo
