// SPDX-License-Identifier: Apache-2.0
//
// A region server as a process of its own: how it starts, and how it ends. It is forked from the
// test, which has no threads at that moment.

#include <pv2/cluster/region_server.h>
#include <pv2/rpc/tcp_transport.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "cluster/server/simple_cluster.h"
#include "storage/log_directories.h"
#include "storage/log_splitter.h"
#include "support/forked_child.h"

namespace pv2::testing::region_server_process_test {
namespace {

using namespace cluster;         // NOLINT: the layer under test
using namespace simple_cluster;  // NOLINT

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  REQUIRE(::pipe(ends.data()) == 0);
  return ends;
}

/// The process of a region server, and what holds its standard input open.
struct Process {
  std::array<int, 2> input = make_pipe();
  ForkedChild child;

  explicit Process(const RegionServerOptions& options)
      : child([&](int writing) {
          ::dup2(input[0], STDIN_FILENO);
          ::close(input[1]);
          ::dup2(writing, STDOUT_FILENO);
          std::_Exit(run_region_server(options));
        }) {
    ::close(input[0]);
  }
  ~Process() { close_input(); }
  void close_input() {
    if (input[1] >= 0) ::close(std::exchange(input[1], -1));
  }
};

/// The sequence of a row that was put into the table by a client.
std::uint64_t put_a_row(SimpleCluster& cluster, const std::shared_ptr<Transport>& transport) {
  cluster.serve(transport);
  cluster.registered.get_future().wait();
  cluster.open_regions(transport);
  auto client =
      ClusterClient::open({.find_master = master_of_root(cluster.root), .transport = transport});
  REQUIRE(client.ok());
  const WriteOutcome outcome = (*client)->put(cluster.region.table, "a", "f", "q", "v");
  INFO(outcome.status.to_string());
  REQUIRE(outcome.ok());
  return outcome.result.sequence;
}

}  // namespace

TEST_CASE("a region server that is asked to end leaves nothing to recover") {
  SimpleCluster cluster;
  Process process({.host = "rs1", .root = cluster.root});
  CHECK(process.child.read_some().starts_with("ready rs1,"));
  auto transport = tcp_transport();
  REQUIRE(transport.ok());
  const std::uint64_t sequence = put_a_row(cluster, *transport);

  SECTION("SIGTERM") { ::kill(process.child.pid(), SIGTERM); }
  SECTION("SIGINT") { ::kill(process.child.pid(), SIGINT); }
  SECTION("the end of its input") { process.close_input(); }
  const int how = process.child.wait();

  CHECK(WIFEXITED(how));
  CHECK(WEXITSTATUS(how) == 0);
  CHECK(cluster.has_left);
  const TableDirectories tables(cluster.files, cluster.layout);
  CHECK(tables.max_sequence(cluster.region).value() >= sequence);
}

TEST_CASE("a region server that is killed has its writes in its log") {
  SimpleCluster cluster;
  Process process({.host = "rs1", .root = cluster.root});
  CHECK(process.child.read_some().starts_with("ready rs1,"));
  auto transport = tcp_transport();
  REQUIRE(transport.ok());
  const std::uint64_t sequence = put_a_row(cluster, *transport);

  process.child.kill();

  CHECK_FALSE(cluster.has_left);
  const TableDirectories tables(cluster.files, cluster.layout);
  CHECK(tables.max_sequence(cluster.region).value() < sequence);
  const LogDirectories logs(cluster.files, cluster.layout);
  REQUIRE(logs.fence(cluster.server.name).ok());
  const auto left = logs.logs(cluster.server.name, cluster::LogKind::kUser);
  REQUIRE(left.ok());
  for (const LogFile& log : *left) {
    CHECK(split_log(cluster.files, cluster.layout, cluster.server.name, log).ok());
  }
  CHECK(tables.has_recovered_edits(cluster.region).value());
}

TEST_CASE("a region server that is fenced ends its process when it has to write") {
  SimpleCluster cluster;
  Process process({.host = "rs1", .root = cluster.root});
  CHECK(process.child.read_some().starts_with("ready rs1,"));
  auto transport = tcp_transport();
  REQUIRE(transport.ok());
  put_a_row(cluster, *transport);
  REQUIRE(LogDirectories(cluster.files, cluster.layout).fence(cluster.server.name).ok());

  auto link = RpcClient::open({.transport = *transport, .addresses = {cluster.server.address}});
  REQUIRE(link.ok());
  WriteRequest write{"r1", {{MutationKind::kPut, "b", "f", "q", "v"}}, 0};
  std::string body;
  encode_fields(write, FieldSelection::kAll, body);
  (*link)->call(std::string(kRegionWrite), std::move(body),
                {.nonce = {9, 1}, .timeout = std::chrono::hours(1)}, [](const CallOutcome&) {});
  const int how = process.child.wait();

  CHECK(WIFEXITED(how));
  CHECK(WEXITSTATUS(how) == kFatalExit);
}

TEST_CASE("a region server without a usable name does not start") {
  SimpleCluster cluster;
  Process process({.host = "", .root = cluster.root});
  const int how = process.child.wait();
  CHECK(WIFEXITED(how));
  CHECK(WEXITSTATUS(how) == 1);
}

}  // namespace pv2::testing::region_server_process_test
