// SPDX-License-Identifier: Apache-2.0
//
// ServerCallsPort: the port ServerCalls of a real cluster. It decides nothing: the dispatcher sends
// operations, the registry knows who lives, the catalogue knows who is dead, and the slots say who
// splits a log.

#pragma once

#include <pv2/procedures/server_calls.h>

#include <cstddef>
#include <map>
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
  void server_changed(const ServerName& server);
  /// From now on nothing is called any more.
  void end() { tasks_.end(); }
  /// How many waits are kept, also those of procedures that have gone on.
  [[nodiscard]] std::size_t waiting() const;

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
  using Predicate = bool (*)(const ServerRow&);
  struct Waiting {
    Predicate is_so;
    Completion<Status> done;
  };
  /// Those who wait for one server. Most of them go on without an answer, because the server lives
  /// and does what it was asked for; they are dropped when there are `look_at`.
  struct Line {
    std::vector<Waiting> waiting;
    std::size_t look_at = 64;
  };

  void wait_for(ServerName server, Predicate is_so, Completion<Status> done);
  void add(const ServerName& server, Waiting waiting);

  Dispatcher& dispatcher_;
  const ServerRegistry& registry_;
  const MetaCatalogue& catalogue_;
  SplitterSlots& slots_;
  const Probe& probe_;
  std::map<ServerName, Line> lines_;
  LoopTasks tasks_;
};

}  // namespace pv2::cluster
