// SPDX-License-Identifier: Apache-2.0
//
// The ServerCrash of a dead server was ended by an operator: the master submits another one.

#include <pv2/procedures/create_table.h>
#include <pv2/procedures/server_crash.h>

#include "cluster/master/cluster_world.h"
#include "master/local_state.h"

namespace pv2::testing::ended_crash_test {
namespace {

using namespace pv2::testing::cluster_world;  // NOLINT: of the test
using namespace std::chrono_literals;

const TableName kTable{"default", "t"};

/// A table on three servers, with a row.
struct World : ClusterWorld {
  World() {
    start_master();
    for (const char* host : {"rs1", "rs2", "rs3"}) start_server(host);
    run_until_quiet();
    REQUIRE(run(CreateTable(ports_elsewhere(), {kTable, {"f"}}, even_split_keys(6))).status.ok());
    REQUIRE(put(*connect(), kTable, "a", "1").ok());
  }
  /// A server with regions, but not that of the catalogue.
  [[nodiscard]] ServerName victim() {
    for (const ServerName& server : servers()) {
      if (server != master().servers().meta.server) return server;
    }
    return {};
  }
  void check_end() {
    run_for(15s);
    run_until_quiet();
    CHECK(disorder().empty());
    CHECK(get(*connect(), kTable, "a") == "1");
  }
};

}  // namespace

TEST_CASE("a server whose ServerCrash was aborted is recovered when it dies") {
  const std::string owner = GENERATE(as<std::string>(), "master", "somebody else");
  World world;
  const ServerName victim = world.victim();
  ServerCrash crash(ports_elsewhere(), victim);
  std::string arguments;
  encode_fields(crash, FieldSelection::kArguments, arguments);
  const AsyncExecutor executor = world.master().executor().async();
  const auto submitted = world.answer<Result<Submitted>>([&](auto done) {
    executor.submit_encoded(
        ServerCrash::kType, arguments, {.nonce = crash_nonce(victim), .owner = owner},
        [=](const Result<Submitted>& result) {
          if (result.ok()) {
            executor.abort(result->id, {.reason = "not now", .who = "test"}, [](const Status&) {});
          }
          done(result);
        });
  });
  REQUIRE(submitted.ok());
  REQUIRE(world.result_of(submitted->id).status.code() == StatusCode::kAborted);

  world.kill_server(victim);

  world.check_end();
}

TEST_CASE("a new master recovers a server that is recorded as dead, if nobody does") {
  World world;
  const ServerName victim = world.victim();
  world.kill_server(victim);
  world.kill_master();
  auto state = cluster::LocalState::open(world.files, world.layout.master() + "/state");
  REQUIRE(state.ok());
  cluster::LocalContents contents = state->contents();
  contents.servers.push_back({{victim, ServerState::kCrashed, false}, "of one that was ended"});
  REQUIRE(state->replace(std::move(contents)).ok());

  world.start_master();

  world.check_end();
}

}  // namespace pv2::testing::ended_crash_test
