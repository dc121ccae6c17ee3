// SPDX-License-Identifier: Apache-2.0
//
// The small real cluster: its files survive and repair what a crash leaves, its region servers are
// processes of their own, and each call ends with the right outcome. Region servers are forked from
// the test, which has no threads at that moment.

#include <pv2/engine/async_executor.h>
#include <pv2/engine/executor_options.h>
#include <pv2/engine/procedure_executor.h>
#include <pv2/engine/procedure_registry.h>
#include <pv2/procedures/create_table.h>
#include <pv2/procedures/local_cluster.h>
#include <pv2/procedures/region_server.h>
#include <pv2/procedures/server_crash.h>
#include <pv2/store/memory_procedure_store.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "cluster/catalogue_journal.h"
#include "cluster/cluster_directory.h"
#include "cluster/disk.h"
#include "cluster/line_client.h"
#include "cluster/server_lines.h"
#include "cluster/table_directories.h"
#include "support/catch.h"
#include "support/forked_child.h"

namespace pv2::testing::local_cluster_test {
namespace {
using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// A cluster directory that is removed at the end, which also ends the servers that a failed test
/// left.
struct Directory {
  fs::path path = [] {
    std::string name = (fs::temp_directory_path() / "pv2-cluster-test.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    return fs::path(name);
  }();
  ClusterDirectory files{path};

  Directory() { REQUIRE(make_cluster_directory(path).ok()); }
  ~Directory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

/// The process of a region server; the constructor returns when the server is ready.
struct Server {
  ServerName name;
  testing::ForkedChild process;

  Server(const fs::path& cluster, ServerName server)
      : name(std::move(server)), process([&](int writing) {
          ::dup2(writing, STDOUT_FILENO);
          std::_Exit(run_region_server({cluster, name}));
        }) {
    REQUIRE_FALSE(process.read_some().empty());
  }
};

const RegionInfo kRegion{{"default", "t"}, "0123456789abcdef", "", ""};

/// To open: under a sequence that is higher than 4.
RemoteOperation operation(RemoteKind kind, const ServerName& server, const std::string& key) {
  return {.kind = kind, .server = server, .effect_key = key, .region = kRegion, .sequence = 4};
}

CatalogueWrite closed(const std::string& key) {
  return {.effect_key = key, .regions = {{kRegion, RegionState::kClosed, {}, 0}}};
}

}  // namespace

TEST_CASE("the catalogue's journal restores the applied writes, and shows attempted ones") {
  Directory directory;
  {
    auto journal = CatalogueJournal::open(directory.files.journal());
    REQUIRE(journal.ok());
    CHECK(*(*journal)->apply(closed("k1")) == Applied::kNow);
    CHECK(*(*journal)->apply(closed("k1")) == Applied::kBefore);
    CHECK((*journal)
              ->apply({.effect_key = "k2", .regions = {{kRegion, RegionState::kOpen, {"a", 1}, 1}}})
              .status()
              .code() == StatusCode::kFailedPrecondition);
    CHECK(CatalogueJournal::open(directory.files.journal()).status().code() == StatusCode::kBusy);
  }

  auto journal = CatalogueJournal::open(directory.files.journal());
  REQUIRE(journal.ok());
  CHECK((*journal)->state().region(kRegion.id)->state == RegionState::kClosed);
  CHECK(*(*journal)->apply(closed("k1")) == Applied::kBefore);
  const auto entries = read_journal(directory.files.journal());
  REQUIRE(entries.ok());
  REQUIRE(entries->size() == 4);
  CHECK((*entries)[1].kind == JournalEntry::Kind::kRepeated);
  CHECK((*entries)[2].kind == JournalEntry::Kind::kRefused);
  CHECK_THAT((*entries)[2].reason, ContainsSubstring("cannot become OPEN"));
}

TEST_CASE("a torn last entry of the journal is cut off, wherever it tears") {
  Directory directory;
  const fs::path path = directory.files.journal();
  { CHECK((*CatalogueJournal::open(path))->apply(closed("k1")).ok()); }
  const std::string whole = *internal::read_file(path);
  {
    CHECK((*CatalogueJournal::open(path))
              ->apply(
                  {.effect_key = "k2", .regions = {{kRegion, RegionState::kOpening, {"a", 1}, 0}}})
              .ok());
  }
  const std::string longer = *internal::read_file(path);

  for (std::size_t size = whole.size(); size < longer.size(); size += 5) {
    REQUIRE(internal::write_file(path, longer.substr(0, size)).ok());
    auto journal = CatalogueJournal::open(path);
    REQUIRE(journal.ok());
    CHECK((*journal)->state().region(kRegion.id)->state == RegionState::kClosed);
    CHECK(fs::file_size(path) == whole.size());
  }
}

TEST_CASE("a layout that broke off anywhere is completed, and foreign entries are removed") {
  Directory directory;
  const TableDirectories tables(directory.files.tables());
  const TableDescriptor t{{"default", "t"}, {"f1"}};
  const auto regions = regions_of(t.name, even_split_keys(3), 7);
  fs::create_directories(directory.files.tables() / "default/t/stray/deep");

  // One descriptor and three regions: four times it breaks off right after the next thing was made.
  for (int attempt = 1; attempt <= 4; ++attempt) {
    CHECK_THROWS(tables.write_layout(t, regions, [] { throw std::runtime_error("killed"); }).ok());
  }
  int made = 0;
  CHECK(tables.write_layout(t, regions, [&] { ++made; }).ok());

  CHECK(made == 0);  // nothing was left to make
  const auto found = tables.list();
  REQUIRE(found.ok());
  REQUIRE(found->size() == 1);
  CHECK((*found)[0].descriptor == t);
  CHECK((*found)[0].regions.size() == 3);
}

TEST_CASE("a region server repeats its answer to an effect key and does each effect once") {
  Directory directory;
  Server server(directory.path, {"rs1", 7});
  const std::uint16_t port = *directory.files.port(server.name);
  LineClient client(5s);
  const auto open = [&](const ServerName& name) {
    return classify(client.ask_and_wait(
        port, line_of(operation(RemoteKind::kOpenRegion, name, "p1.s2.v1/open"))));
  };

  CHECK(open(server.name).dispatch.kind == DispatchOutcome::Kind::kDone);
  CHECK(open(server.name).sequence == 5);
  // another life of that host
  CHECK(open({"rs1", 8}).dispatch.kind == DispatchOutcome::Kind::kNotSent);
  CHECK(client.ask_and_wait(port, "LIST rs1,7").text == "REGIONS " + kRegion.id + "=5");
  const auto effects = directory.files.server_effects();
  REQUIRE(effects.ok());
  CHECK(effects->at("open " + kRegion.id + " p1.s2.v1/open") == 1);
  const std::string close = line_of(operation(RemoteKind::kCloseRegion, server.name, "k2"));
  CHECK(classify(client.ask_and_wait(port, close)).dispatch.kind == DispatchOutcome::Kind::kDone);
  CHECK(client.ask_and_wait(port, "LIST rs1,7").text == "REGIONS");
  CHECK(classify(client.ask_and_wait(port, "NONSENSE rs1,7 a b")).dispatch.kind ==
        DispatchOutcome::Kind::kRefused);
}

TEST_CASE("a call to a dead server is not sent, and one to a stopped server is unknown") {
  Directory directory;
  Server server(directory.path, {"rs1", 7});
  const std::uint16_t port = *directory.files.port(server.name);
  LineClient client(100ms);
  const std::string line = line_of(operation(RemoteKind::kOpenRegion, server.name, "k"));

  ::kill(server.process.pid(), SIGSTOP);
  CHECK(classify(client.ask_and_wait(port, line)).dispatch.kind == DispatchOutcome::Kind::kUnknown);
  server.process.kill();
  CHECK(classify(client.ask_and_wait(port, line)).dispatch.kind == DispatchOutcome::Kind::kNotSent);
}

TEST_CASE("a region server ends by itself when its registration is removed") {
  Directory directory;
  Server server(directory.path, {"rs1", 7});

  REQUIRE(directory.files.unregister_server(server.name).ok());

  server.process.wait();  // hangs if it does not
  CHECK(directory.files.registered()->empty());
}

TEST_CASE("on the real cluster a table is created, and moves off a server that is killed") {
  Directory directory;
  Server rs1(directory.path, {"rs1", 1});
  Server rs2(directory.path, {"rs2", 2});
  auto cluster = LocalCluster::open({.directory = directory.path, .probe = {}});
  REQUIRE(cluster.ok());
  CHECK(LocalCluster::open({.directory = directory.path, .probe = {}}).status().code() ==
        StatusCode::kBusy);
  ProcedureRegistry types;
  add_cluster_procedures(types, (*cluster)->ports());
  auto executor = ProcedureExecutor::open(
      {.store = memory(std::make_shared<MemoryDisk>(), {.mode = MemoryStoreOptions::Mode::kThread}),
       .registry = types,
       .retry = {.base = 5ms, .cap = 50ms}});
  REQUIRE(executor.ok());
  (*cluster)->report_to(
      [&](ProcedureId id, std::string payload, std::function<void(const Status&)> answer) {
        (*executor)->async().signal(id, std::string(kReportSignal), std::move(payload),
                                    std::move(answer));
      });
  (*executor)->start();
  const TableDescriptor t{{"default", "t"}, {"f1"}};

  const auto create = (*executor)->submit(CreateTable((*cluster)->ports(), t, even_split_keys(4)));
  REQUIRE(create.ok());
  REQUIRE((*executor)->wait(create->id, 60s)->state == ProcedureState::kSuccess);
  CHECK(find_disorder(*inspect_cluster(directory.path)).empty());

  rs1.process.kill();
  const auto crash = (*executor)->submit(ServerCrash((*cluster)->ports(), rs1.name));
  REQUIRE(crash.ok());
  REQUIRE((*executor)->wait(crash->id, 60s)->state == ProcedureState::kSuccess);
  const auto world = inspect_cluster(directory.path);
  REQUIRE(world.ok());
  CHECK(find_disorder(*world).empty());
  for (const RegionRow& row : world->regions) CHECK(row.server == rs2.name);
  (*executor)->stop();
}

TEST_CASE("the persisted names of servers and regions never change") {
  CHECK(to_string(parse_server_name("rs1,17")) == "rs1,17");
  CHECK(parse_server_name("a,b,3").host == "a,b");
  CHECK(parse_server_name("rs1").empty());
  CHECK(parse_server_name("rs1,x").empty());
  CHECK(parse_server_name("rs1,7.new").empty());
  // Persisted in catalogues and directories: these must never change.
  const auto regions = regions_of({"default", "t"}, {"m"}, 1);
  CHECK(regions[0].id == "b33bdddec769c9c9");
  CHECK(regions[1].start_key == "m");
  CHECK(crash_nonce({"rs1", 17}).group == 0x5365727665724372);
}

}  // namespace pv2::testing::local_cluster_test
