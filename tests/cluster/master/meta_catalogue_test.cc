// SPDX-License-Identifier: Apache-2.0
//
// The catalogue of a real master: what it sends to its table, and what it answers when the table
// cannot take it. And those who wait for a row of a server.

#include "master/meta_catalogue.h"

#include <pv2/procedures/init_meta.h>

#include <optional>
#include <string>
#include <vector>

#include "cluster/master/parts_world.h"
#include "master/dispatcher.h"
#include "master/server_calls_port.h"
#include "support/crash_env.h"
#include "wire/catalogue_rows.h"
#include "wire/methods.h"
#include "wire/region_messages.h"

namespace pv2::testing::meta_catalogue_test {
namespace {

using namespace cluster;      // NOLINT: the layer under test
using namespace parts_world;  // NOLINT
using namespace std::chrono_literals;

const ServerName kHost{"rs1", 1};

LocalState fresh(const FileTree& files) {
  REQUIRE(files.make_directories("master").ok());
  auto local = LocalState::open(files, "master/state");
  REQUIRE(local.ok());
  return *std::move(local);
}

/// A catalogue whose table is on a scripted server, and is empty at first.
struct World : PartsWorld {
  World() {
    find_address = [this](const ServerName&) { return host->address(); };
    catalogue.begin(table);
    settle();
    REQUIRE(catalogue.is_online());
  }
  void take_write(IncomingCall call) {
    WriteRequest request;
    REQUIRE(decode_fields(request, FieldSelection::kAll, call.body()).ok());
    batches.push_back(request.mutations.size());
    if (!refusal.ok()) return call.fail(refusal);
    call.reply(encoded(WriteResult{1, {}}));
  }
  Wait<Result<Applied>> write(const std::string& key, const TableDescriptor& descriptor) {
    Wait<Result<Applied>> wait;
    catalogue.write({.effect_key = key, .tables = {{descriptor, TableState::kEnabled}}},
                    wait.completion());
    return wait;
  }

  CrashEnv env;
  FileTree files{*env.as_env(), env.directory_sync(), "master"};
  LocalState local = fresh(files);
  const Probe probe{{}};
  std::vector<std::size_t> batches;  ///< How many rows each write of the table had.
  Status refusal;                    ///< What the table says to a write.
  std::vector<Status> ends;
  std::vector<std::string> notices;
  int later_epochs = 0;  ///< How often the table says that it has heard a later master.
  std::unique_ptr<RpcServer> host = serve(
      {{std::string(kRegionScan), [](IncomingCall call) { call.reply(encoded(ScanPage{})); }},
       {std::string(kRegionWrite), [this](IncomingCall call) { take_write(std::move(call)); }}});
  ServerRegistry registry{10s, [](const ServerName&, const std::string&) {}};
  SplitterSlots slots{[this] { return registry.live(); }, [](ProcedureId) { return false; }};
  Dispatcher dispatcher{transport,
                        links,
                        1,
                        10s,
                        {.is_awaited = [](const ServerName&) { return false; },
                         .give_up = [](const ServerName&) {},
                         .on_later_epoch = [] {}}};
  MetaCatalogue catalogue{
      transport,
      local,
      work,
      probe,
      {.server_changed = [this](const ServerRow& row) { calls.server_changed(row.name); },
       .meta_changed = [](const RegionRow&) {},
       .on_fatal = [this](const Status& why) { ends.push_back(why); }}};
  MetaTable table{transport,
                  links,
                  1,
                  {.find_host = [] { return std::optional(kHost); },
                   .on_later_epoch = [this] { ++later_epochs; },
                   .notice = [this](const std::string& line) { notices.push_back(line); }}};
  ServerCallsPort calls{transport, dispatcher, registry, catalogue, slots, probe};
};

}  // namespace

TEST_CASE("a write that the catalogue's table would never take is refused, and others go on") {
  World world;
  TableDescriptor wide{{"default", "wide"}, {"f"}};
  while (wide.families.size() * 60 <= kValueBytesMax) {
    wide.families.push_back("f" + std::to_string(wide.families.size()) + std::string(60, 'x'));
  }
  REQUIRE(encoded(wide).size() > kValueBytesMax);

  const auto refused = world.write("1", wide);
  const auto taken = world.write("2", {{"default", "t"}, {"f"}});
  world.settle();

  CHECK(refused.answer().status().code() == StatusCode::kInvalidArgument);
  CHECK(taken.answer().status().to_string() == "OK");
  CHECK(!world.catalogue.rows().table({"default", "wide"}));
  CHECK(world.catalogue.rows().table({"default", "t"}));
  CHECK(world.ends.empty());
}

TEST_CASE("a batch of the catalogue is bounded in bytes") {
  World world;
  // Each is a third of what a batch may have.
  std::vector<Wait<Result<Applied>>> writes;
  for (int i = 0; i < 7; ++i) {
    TableDescriptor large{{"default", "t" + std::to_string(i)}, {}};
    for (int family = 0; family < 5200; ++family) {
      large.families.push_back(std::to_string(family) + std::string(60, 'x'));
    }
    writes.push_back(world.write(std::to_string(i), large));
  }
  world.settle();

  for (const auto& write : writes) CHECK(write.answer().ok());
  CHECK(world.batches == std::vector<std::size_t>{3, 3, 1});
}

TEST_CASE("a write that the table says it will never take ends the master, loudly") {
  World world;
  world.refusal = {StatusCode::kInvalidArgument, "no"};

  const auto write = world.write("1", {{"default", "t"}, {"f"}});
  world.run_for(1s);

  CHECK(!write.is_answered());
  CHECK(world.batches.size() == 1);
  REQUIRE(world.ends.size() == 1);
  CHECK(world.ends.front().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a write that is refused because of a later master is repeated: there may be none") {
  World world;
  world.refusal = {StatusCode::kFenced, "the master of epoch 8 was heard"};

  const auto write = world.write("1", {{"default", "t"}, {"f"}});
  world.run_for(1s);
  CHECK(!write.is_answered());
  CHECK(world.batches.size() > 1);
  CHECK(world.later_epochs == static_cast<int>(world.batches.size()));
  world.refusal = Status();
  world.run_for(1s);

  CHECK(write.answer().status().to_string() == "OK");
  CHECK(world.ends.empty());
}

TEST_CASE(
    "the log says why a call to the catalogue is repeated: when that changes, and each minute") {
  World world;
  world.refusal = {StatusCode::kUnavailable, "its memory is full"};
  const auto write = world.write("1", {{"default", "t"}, {"f"}});

  world.run_for(50s);
  REQUIRE(world.notices.size() == 1);
  CHECK(world.notices.front() ==
        "a call to the catalogue's table on server rs1,1 is repeated: UNAVAILABLE: its memory is "
        "full");
  world.run_for(30s);
  CHECK(world.notices.size() == 2);
  world.refusal = {StatusCode::kNotFound, "it is not here"};
  world.run_for(50s);
  CHECK(world.notices.size() == 3);
  world.refusal = Status();
  world.run_for(1s);

  CHECK(write.answer().ok());
  CHECK(world.notices.size() == 3);
}

TEST_CASE("those who wait for the crash of a server are forgotten when they have gone on") {
  World world;
  const ServerName server{"rs2", 1};
  const Wait<Status> patient;
  world.calls.when_crashed(server, patient.completion());
  for (int i = 0; i < 10'000; ++i) {
    const Wait<Status> gone;
    world.calls.when_crashed(server, gone.completion());
    world.settle();
  }
  CHECK(world.calls.waiting() <= 64);
  CHECK(!patient.is_answered());

  const Wait<Result<Applied>> crashed;
  world.catalogue.write(
      {.effect_key = "1", .servers = {{.name = server, .state = ServerState::kCrashed}}},
      crashed.completion());
  world.settle();

  CHECK(crashed.answer().ok());
  CHECK(patient.answer().ok());
  CHECK(world.calls.waiting() == 0);
}

}  // namespace pv2::testing::meta_catalogue_test
