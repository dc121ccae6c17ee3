// SPDX-License-Identifier: Apache-2.0
//
// Two clusters of real processes, each with a master and one region server, on real files and
// sockets: what is written into the first one comes to the second, also when the server that has it
// in its log is killed. The processes are forked from the test, which has no threads at that
// moment.

#include <pv2/cluster/cluster_client.h>
#include <pv2/cluster/inspect_cluster.h>
#include <pv2/cluster/master.h>
#include <pv2/cluster/region_server.h>
#include <pv2/procedures/add_peer.h>
#include <pv2/procedures/cluster_ports.h>
#include <pv2/procedures/create_table.h>
#include <pv2/rpc/tcp_transport.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "support/catch.h"
#include "support/forked_child.h"
#include "support/temporary_directory.h"

namespace pv2::testing::replication_process_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test
using namespace std::chrono_literals;

const TableName kTable{"default", "t"};

/// A process that lives as long as its standard input is open.
class Process {
 public:
  template <class Run>
  explicit Process(Run run)
      : input_(make_pipe()), child_([this, run](int writing) {
          ::dup2(input_[0], STDIN_FILENO);
          ::close(input_[1]);
          ::dup2(writing, STDOUT_FILENO);
          std::_Exit(run());
        }) {
    ::close(input_[0]);
    INFO("the child did not start");
    REQUIRE(child_.read_some().starts_with("ready "));
  }
  ~Process() { ::close(input_[1]); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

 private:
  static std::array<int, 2> make_pipe() {
    std::array<int, 2> ends{-1, -1};
    REQUIRE(::pipe(ends.data()) == 0);
    return ends;
  }

  std::array<int, 2> input_;
  ForkedChild child_;
};

struct Cluster {
  TemporaryDirectory directory;
  std::string root = directory.path("cluster");
  std::unique_ptr<Process> master;
  std::unique_ptr<Process> server;
  std::unique_ptr<Process> second;

  void start() {
    master = std::make_unique<Process>(
        [this] { return run_master({.root = root, .lease = 1s, .log = silent()}); });
    server = start_server("rs1");
  }
  [[nodiscard]] std::unique_ptr<Process> start_server(const std::string& host) const {
    return std::make_unique<Process>([this, host] {
      return run_region_server({.host = host,
                                .root = root,
                                .log_bytes_max = 4096,
                                .heartbeat_every = 100ms,
                                .log = silent()});
    });
  }
  static LogSink silent() {
    return [](LogLevel, std::string_view) {};
  }
  [[nodiscard]] std::unique_ptr<ClusterClient> connect(
      const std::shared_ptr<Transport>& transport) const {
    auto client =
        ClusterClient::open({.find_master = master_of_root(root), .transport = transport});
    REQUIRE(client.ok());
    return *std::move(client);
  }
};

template <class P>
void run(ClusterClient& client, P procedure) {
  const SubmitOutcome submitted = client.executor().submit(std::move(procedure));
  REQUIRE(submitted.status.to_string() == "OK");
  const Result<ProcedureResult> ended = client.executor().wait(submitted.id, 60s);
  REQUIRE(ended.status().to_string() == "OK");
  REQUIRE(ended->status.to_string() == "OK");
}

std::string value_of(ClusterClient& client, const std::string& row) {
  const auto cells = client.get(kTable, row);
  return cells.ok() && !cells->empty() ? cells->front().value : "";
}

}  // namespace

TEST_CASE("real processes: a copy is complete though the server with the edits was killed") {
  Cluster source;
  Cluster copy;
  source.start();
  copy.start();
  source.second = source.start_server("rs2");
  auto transport = tcp_transport();
  REQUIRE(transport.ok());
  const auto client = source.connect(*transport);
  const auto copy_client = copy.connect(*transport);
  run(*client, CreateTable(ports_elsewhere(), {kTable, {"f"}}, even_split_keys(4)));
  run(*copy_client, CreateTable(ports_elsewhere(), {kTable, {"f"}}, {}));
  run(*client, AddPeer(ports_elsewhere(), {"p", {copy.root, {}}}));

  const auto row_of = [](int i) { return std::string(1, static_cast<char>(i * 5)) + "row"; };
  for (int i = 0; i < 50; ++i) {
    REQUIRE(client->put(kTable, row_of(i), "f", "q", std::to_string(i)).ok());
    if (i == 30) source.server.reset();  // SIGKILL, right after an acknowledged write
  }
  // Every read asks the servers anew, so this is no loop without work.
  const auto is_complete = [&] {
    for (int i = 0; i < 50; ++i) {
      if (value_of(*copy_client, row_of(i)) != std::to_string(i)) return false;
    }
    return true;
  };
  const auto deadline = std::chrono::steady_clock::now() + 120s;
  while (!is_complete() && std::chrono::steady_clock::now() < deadline) {
  }
  CHECK(is_complete());

  // An operator sees the peer, and in the end that nothing is behind.
  const auto is_at_end = [&] {
    const auto servers = client->servers();
    if (!servers.ok() || servers->live.size() != 1) return false;
    const auto status = client->server_status(servers->live.front().name);
    if (!status.ok() || status->peers.size() != 1) return false;
    return status->peers.front().queues.size() == 1 &&
           status->peers.front().queues.front().bytes_behind == 0;
  };
  while (!is_at_end() && std::chrono::steady_clock::now() < deadline) {
  }
  CHECK(is_at_end());
  const auto snapshot = inspect_cluster(*client, source.root);
  REQUIRE(snapshot.status().to_string() == "OK");
  CHECK(snapshot->peers.size() == 1);
  for (const std::string& finding : find_disorder(*snapshot)) FAIL_CHECK(finding);
}

}  // namespace pv2::testing::replication_process_test
