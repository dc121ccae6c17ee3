// SPDX-License-Identifier: Apache-2.0
//
// StoryClients: the clients of a random story: processes of their own on a network that loses
// frames. They write and read; and they misbehave: they give up early, die with what they have
// sent, go on with an unknown write later, send an old write again, ask the wrong server, and never
// hear that a region has moved.

#pragma once

#include <pv2/base/random.h>
#include <pv2/cluster/cluster_client.h>
#include <pv2/rpc/rpc_client.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/master/cluster_world.h"
#include "cluster/master/process_transport.h"
#include "cluster/simulation/write_history.h"

namespace pv2::testing::cluster_simulation {

/// Owned by one thread.
class StoryClients {
 public:
  /// `tell` takes a line for the trace.
  StoryClients(cluster_world::ClusterWorld& world, WriteHistory& history, Random& random,
               ProcessTransport::Route route, std::function<void(std::string)> tell);
  ~StoryClients();

  /// One of the clients does something with one of `tables`.
  void act(const std::vector<TableName>& tables);
  /// Somebody whose map says that `server` has a region, and who waits for its answer alone,
  /// however long that takes, writes something new.
  void insist_on(const ServerName& server);
  /// As insist_on(), but reads.
  void read_from(const ServerName& server);
  /// A client dies, and another one comes.
  void replace_one();
  /// Goes on with a write, as long as it takes.
  void resume(Write& write);
  /// Lets a client do one thing of those that wait.
  bool turn();
  /// Lets all of them do all that waits.
  bool settle();
  /// Nothing that was sent is without an outcome.
  [[nodiscard]] bool are_idle() const noexcept { return open_ == 0; }
  [[nodiscard]] cluster::ClusterClient& any();

 private:
  struct Process {
    std::uint64_t number = 0;
    std::shared_ptr<ProcessTransport> network;
    std::unique_ptr<cluster::ClusterClient> client;
    std::uint64_t writes = 0;
  };

  Process start();
  void send(Process& process, Write& write, cluster::WriteOptions options);
  void write(Process& process, const TableName& table);
  void read(Process& process, const TableName& table);
  void scan(Process& process, const TableName& table);
  void tend(Process& process, const TableName& table);
  void ask_a_server(Process& process, Write& write);
  /// Past the client library.
  void call(Process& process, const ServerName& server, const std::string& region, Write& write,
            Duration timeout);
  [[nodiscard]] Write* choose(Write::State state);

  cluster_world::ClusterWorld& world_;
  WriteHistory& history_;
  Random& random_;
  const ProcessTransport::Route route_;
  const std::function<void(std::string)> tell_;
  std::uint64_t started_ = 0;
  std::size_t open_ = 0;
  std::vector<Process> processes_;
  /// Calls past the client library.
  std::vector<std::unique_ptr<RpcClient>> raw_;
};

}  // namespace pv2::testing::cluster_simulation
