// SPDX-License-Identifier: Apache-2.0
//
// ServerCallsPort: the port ServerCalls of a real cluster. It decides nothing: the dispatcher sends
// operations, the registry knows who lives, the catalogue knows who is dead, and the slots say who
// splits a log.

#pragma once

#include <pv2/procedures/server_calls.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "master/dispatcher.h"
#include "master/meta_catalogue.h"
#include "master/probe.h"
#include "master/server_registry.h"
#include "master/splitter_slots.h"
#include "wire/loop_tasks.h"

namespace pv2::cluster {

/// The port may be called from any thread; the rest is used on the loop.
class ServerCallsPort final : public ServerCalls {
 public:
  /// All references outlive this.
  ServerCallsPort(std::shared_ptr<Transport> transport, Dispatcher& dispatcher,
                  const ServerRegistry& registry, const MetaCatalogue& catalogue,
                  SplitterSlots& slots, const Probe& probe)
      : dispatcher_(dispatcher),
        registry_(registry),
        catalogue_(catalogue),
        slots_(slots),
        probe_(probe),
        tasks_(std::move(transport)) {}

  /// The row of a server has changed in the catalogue: answers those who wait for that.
  void server_changed();

  // ServerCalls
  void dispatch(RemoteOperation operation, Completion<DispatchOutcome> done) override;
  void live_servers(Completion<Result<std::vector<ServerName>>> done) override;
  void known_servers(Completion<Result<std::vector<ServerName>>> done) override;
  void when_crashed(ServerName server, Completion<Status> done) override;
  void when_recovered(ServerName server, pv2::LogKind kind, Completion<Status> done) override;
  void acquire_splitter(ProcedureId procedure, ServerName preferred,
                        Completion<Result<ServerName>> done) override;
  void release_splitter(ProcedureId procedure) override;

 private:
  struct Waiting {
    ServerName server;
    bool (*is_so)(const ServerRow&);
    Completion<Status> done;
  };

  void wait_for(ServerName server, bool (*is_so)(const ServerRow&), Completion<Status> done);

  Dispatcher& dispatcher_;
  const ServerRegistry& registry_;
  const MetaCatalogue& catalogue_;
  SplitterSlots& slots_;
  const Probe& probe_;
  std::vector<Waiting> waiting_;
  LoopTasks tasks_;
};

}  // namespace pv2::cluster
