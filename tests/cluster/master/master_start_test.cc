// SPDX-License-Identifier: Apache-2.0
//
// A master that starts where something is wrong: it says what, and goes on as far as it can.

#include <pv2/procedures/create_table.h>
#include <pv2/rpc/rpc_client.h>

#include "cluster/master/cluster_world.h"
#include "master/local_state.h"
#include "wire/methods.h"
#include "wire/server_messages.h"

namespace pv2::testing::master_start_test {
namespace {

using namespace cluster;                      // NOLINT: the layer under test
using namespace pv2::testing::cluster_world;  // NOLINT: of the test
using namespace std::chrono_literals;

CreateTable create(const std::string& name) {
  return {ports_elsewhere(), {{"default", name}, {"f"}}, {}};
}

/// What the master answers to a report.
CallOutcome send(ClusterWorld& world, ReportRequest report) {
  auto client =
      RpcClient::open({.transport = world.transport, .addresses = {world.master().address()}});
  REQUIRE(client.ok());
  std::string body;
  encode_fields(report, FieldSelection::kAll, body);
  std::optional<CallOutcome> outcome;
  (*client)->call(std::string(kMasterReport), body, {.read_only = true, .timeout = 5s},
                  [&](CallOutcome given) { outcome = std::move(given); });
  world.run_until([&] { return outcome.has_value(); });
  return *outcome;
}

}  // namespace

TEST_CASE("a cluster that could not be made is made by the next master, once that is mended") {
  ClusterWorld world;
  world.start_master();
  const ServerName first = world.start_server("rs1");
  world.run_until_quiet();
  world.end_server(first);  // its catalogue is in store files now
  world.kill_master();
  const auto id = world.files.read(world.layout.cluster_id());
  REQUIRE(id.ok());
  REQUIRE(world.files.remove_tree(world.layout.master()).ok());
  world.env.set_contents(world.layout.cluster_id(), *id);
  world.disk = std::make_shared<MemoryDisk>();
  world.start_master();
  world.start_server("rs1");
  world.run_for(5s);
  CHECK(!world.master().is_online());

  for (int life = 0; life < 3; ++life) {  // it fails again, each time under a new nonce
    world.kill_master();
    world.start_master();
    world.run_for(5s);
    CHECK(!world.master().is_online());
  }
  REQUIRE(world.files.remove_tree(world.layout.data()).ok());
  world.kill_master();
  world.start_master();
  world.run_until_quiet();

  CHECK(world.run(create("t")).status.to_string() == "OK");
  CHECK(world.disorder().empty());
}

TEST_CASE("a descriptor that cannot be read keeps no other table from being used") {
  ClusterWorld world;
  world.start_master();
  world.start_server("rs1");
  world.run_until_quiet();
  REQUIRE(world.run(create("damaged")).status.ok());
  REQUIRE(world.run(create("t")).status.ok());
  const std::string versions = world.layout.descriptors({"default", "damaged"});
  const auto names = world.files.list(versions);
  REQUIRE(names.ok());
  for (const std::string& name : *names) {
    REQUIRE(world.files.write(versions + "/" + name, "garbage").ok());
  }

  world.kill_master();
  world.start_master();
  world.run_until_quiet();

  const auto client = world.connect();
  CHECK(world.put(*client, {"default", "t"}, "row", "1").ok());
  CHECK(world.run(create("another")).status.to_string() == "OK");
}

TEST_CASE("a master says that a server names a later master, of which there is no file") {
  ClusterWorld world;
  int warnings = 0;
  world.adjust_master = [&](MasterOptions& options) {
    options.log = [&](LogLevel, std::string_view line) {
      if (line.find("a later epoch than 1") != std::string_view::npos) ++warnings;
    };
  };
  world.start_master();
  const ServerName server = world.start_server("rs1");
  world.run_until_quiet();

  for (int i = 0; i < 3; ++i) {
    ReportRequest report{.epoch = 2, .items = {{.procedure = ProcedureId{1}, .report = {}}}};
    CHECK(!send(world, std::move(report)).ok());
    world.run_for(1s);
  }

  CHECK(warnings == 1);
}

TEST_CASE("a server closes a region if who had it opened was ended, and the row says OPENING") {
  const TableName table{"default", "t"};
  ClusterWorld world;
  world.start_master();
  world.start_server("rs1");
  world.start_server("rs2");
  world.run_until_quiet();
  ServerName server = world.servers().at(0);
  if (server == world.master().servers().meta.server) server = world.servers().at(1);
  std::optional<RegionRow> row;
  const auto is_there = [&](RegionState state) {
    row.reset();
    for (const RegionRow& region : world.master().rows().regions_of(table)) {
      if (region.server == server && region.state == state) row = region;
    }
    return row.has_value();
  };
  const auto verdict = [&] {
    const CallOutcome outcome =
        send(world, {.epoch = world.master().epoch(),
                     .items = {{.procedure = ProcedureId{1'000'000},
                                .report = {.server = server, .effect_key = "key", .done = true},
                                .region = row.value().region}}});
    REQUIRE(outcome.ok());
    ReportReply reply;
    REQUIRE(decode_fields(reply, FieldSelection::kAll, outcome.body).ok());
    return reply.verdicts.at(0);
  };

  world.stop_server(server);
  const ProcedureId creation =
      world.submit(CreateTable(ports_elsewhere(), {table, {"f"}}, even_split_keys(4)));
  world.run_until([&] { return is_there(RegionState::kOpening); });
  CHECK(verdict() == ReportReply::Verdict::kNotHere);
  world.resume_server(server);
  REQUIRE(world.result_of(creation).status.ok());

  REQUIRE(is_there(RegionState::kOpen));
  CHECK(verdict() == ReportReply::Verdict::kTaken);
}

TEST_CASE("a report that names a later master is refused, and ends only one that has a successor") {
  const bool has_successor = GENERATE(false, true);
  ClusterWorld world;
  world.start_master();
  const ServerName server = world.start_server("rs1");
  world.run_until_quiet();
  auto client =
      RpcClient::open({.transport = world.transport, .addresses = {world.master().address()}});
  REQUIRE(client.ok());
  ReportRequest report{
      .epoch = world.master().epoch() + 1,
      .items = {{.procedure = ProcedureId{1},
                 .report = {.server = server, .effect_key = "key", .done = true}}}};
  if (has_successor) {
    auto state = *LocalState::open(world.files, world.layout.master() + "/state");
    LocalContents contents = state.contents();
    contents.epoch = report.epoch;
    REQUIRE(state.replace(std::move(contents)).ok());
  }
  std::string body;
  encode_fields(report, FieldSelection::kAll, body);
  std::optional<CallOutcome> outcome;
  (*client)->call(std::string(kMasterReport), body, {.read_only = true, .timeout = 5s},
                  [&](CallOutcome given) { outcome = std::move(given); });

  if (has_successor) world.run_until([&] { return !world.has_master(); });
  world.run_until([&] { return outcome.has_value(); });
  world.run_for(10s);

  CHECK(!outcome->ok());
  CHECK(world.has_master() == !has_successor);
  if (has_successor) CHECK(world.master_end.value().code() == StatusCode::kFenced);
}

}  // namespace pv2::testing::master_start_test
