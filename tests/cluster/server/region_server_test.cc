// SPDX-License-Identifier: Apache-2.0
//
// What a region server does for the master: orders to open, close and split, reports, and its end.

#include <chrono>

#include "cluster/server/region_world.h"
#include "storage/log_directories.h"
#include "storage/region_files.h"
#include "storage/table_directories.h"
#include "wire/methods.h"

namespace pv2::testing::region_server_test {
namespace {

using namespace cluster;       // NOLINT: the layer under test
using namespace region_world;  // NOLINT

}  // namespace

TEST_CASE("a region is served only when the master has taken the report of its opening") {
  World world;
  const ServerName server = world.start("rs1");
  bool is_deaf = true;
  world.swallows = [&](const RemoteReport&) { return is_deaf; };

  const RemoteOperation open = world.order(RemoteKind::kOpenRegion, server, kRegion);
  REQUIRE(world.dispatch(server, {open}).answers.at(0).accepted);
  world.run_until([&] { return world.reports.size() >= 3; });

  CHECK_FALSE(world.call(server, kRegionScan, scan_body(), reading()).ok());
  CHECK(world.call(server, kRegionWrite, put_body("a", "1"), once(1)).kind ==
        CallOutcome::Kind::kFailed);
  is_deaf = false;
  world.run_until([&] { return world.process(server).server->status().regions.at(0).serves; });
  result_of(world.call(server, kRegionWrite, put_body("a", "1"), once(1)));
  CHECK(values_of(world.call(server, kRegionScan, scan_body(), reading())) == Values{"a=1"});
}

TEST_CASE("copies of a dispatch do nothing, and get the same answer") {
  World world;
  const ServerName server = world.start("rs1");
  const RemoteOperation open = world.order(RemoteKind::kOpenRegion, server, kRegion);

  const DispatchReply reply = world.dispatch(server, {open, open});
  CHECK(reply.answers.at(0).accepted);
  CHECK(reply.answers.at(1).accepted);
  REQUIRE(world.report_of(open).done);
  const auto before = world.process(server).server->status();
  CHECK(world.dispatch(server, {open}).answers.at(0).accepted);
  world.run_for(std::chrono::seconds(2));

  CHECK(world.reports.size() == 1);
  const auto after = world.process(server).server->status();
  REQUIRE(after.regions.size() == 1);
  CHECK(after.regions[0].sequence == before.regions.at(0).sequence);
  CHECK(after.regions[0].serves);
}

TEST_CASE("a server does not answer an operation for another server in its name") {
  World world;
  const ServerName server = world.start("rs1");
  const RemoteOperation open = world.order(RemoteKind::kOpenRegion, {"rs1", 17}, kRegion);

  const CallOutcome strange = world.try_dispatch(server, {open}, world.epoch);

  // "I will not do it" is what only the addressee knows: to the master this was not sent.
  CHECK(strange.kind == CallOutcome::Kind::kFailed);
  world.run_for(std::chrono::seconds(1));
  CHECK(world.reports.empty());
}

TEST_CASE("a dispatch of a deposed master is refused") {
  World world;
  const ServerName server = world.start("rs1");
  const RemoteOperation open = world.order(RemoteKind::kOpenRegion, server, kRegion);
  world.start_master(7);
  world.dispatch(server, {}, 7);

  const CallOutcome old = world.try_dispatch(server, {open}, 6);

  CHECK(old.kind == CallOutcome::Kind::kFailed);
  CHECK(old.status.code() == StatusCode::kFenced);
  world.run_for(std::chrono::seconds(1));
  CHECK(world.reports.empty());
}

TEST_CASE("opposite orders for one region run one after the other") {
  World world;
  const ServerName server = world.start("rs1");
  const auto open = world.order(RemoteKind::kOpenRegion, server, kRegion);
  const auto close = world.order(RemoteKind::kCloseRegion, server, kRegion);
  const auto open_again = world.order(RemoteKind::kOpenRegion, server, kRegion);

  world.dispatch(server, {open, close, open_again});
  REQUIRE(world.report_of(open_again).done);

  REQUIRE(world.reports.size() == 3);
  CHECK(world.reports[0].effect_key == open.effect_key);
  CHECK(world.reports[1].effect_key == close.effect_key);
  CHECK(world.reports[2].sequence > world.reports[0].sequence);
  CHECK(world.process(server).server->status().regions.at(0).serves);
}

TEST_CASE("a region that the master does not want here is dropped, and may come back") {
  World world;
  const ServerName server = world.start("rs1");
  world.verdict = [](const RemoteReport&) { return ReportReply::Verdict::kNotHere; };
  const auto open = world.order(RemoteKind::kOpenRegion, server, kRegion);
  world.dispatch(server, {open});
  REQUIRE(world.report_of(open).done);
  CHECK(world.process(server).server->status().regions.empty());
  CHECK(world.call(server, kRegionScan, scan_body(), reading()).status.code() ==
        StatusCode::kNotFound);

  world.verdict = {};
  world.open(kRegion, server);
  CHECK(values_of(world.call(server, kRegionScan, scan_body(), reading())).empty());
}

TEST_CASE("a report is repeated while the master says again") {
  World world;
  const ServerName server = world.start("rs1");
  int asked = 0;
  world.verdict = [&](const RemoteReport&) {
    return ++asked < 4 ? ReportReply::Verdict::kAgain : ReportReply::Verdict::kTaken;
  };
  const auto open = world.order(RemoteKind::kOpenRegion, server, kRegion);
  world.dispatch(server, {open});

  world.run_until([&] { return asked == 4; });
  world.run_for(std::chrono::seconds(10));
  CHECK(asked == 4);
  CHECK(world.process(server).server->status().regions.at(0).serves);
}

TEST_CASE("an opening that fails is reported, and a later order may succeed") {
  ServerWorld world;
  const ServerName server = world.start("rs1");
  const auto open = world.order(RemoteKind::kOpenRegion, server, kRegion);
  world.dispatch(server, {open});

  const RemoteReport report = world.report_of(open);

  CHECK_FALSE(report.done);
  CHECK(report.reason != "");
  world.make_table(kTable, {"f"}, {kRegion});
  world.open(kRegion, server);
}

TEST_CASE("a close flushes, so the region needs no log of its old server") {
  World world;
  const ServerName first = world.start("rs1");
  const ServerName second = world.start("rs2");
  world.open(kRegion, first);
  result_of(world.call(first, kRegionWrite, put_body("a", "1"), once(1)));

  world.close(kRegion);
  CHECK(world.call(first, kRegionScan, scan_body(), reading()).status.code() ==
        StatusCode::kNotFound);
  REQUIRE(world.files.remove_tree(world.layout.wals(first)).ok());
  world.open(kRegion, second);

  CHECK(values_of(world.call(second, kRegionScan, scan_body(), reading())) == Values{"a=1"});
}

TEST_CASE("a close waits for the calls that use the region") {
  World world;
  const ServerName server = world.start("rs1");
  world.open(kRegion, server);
  world.process(server).holds_calls = true;
  std::optional<CallOutcome> write;
  world.process(server).link->call(std::string(kRegionWrite), put_body("a", "1"),
                                   once(1, std::chrono::minutes(1)),
                                   [&](CallOutcome outcome) { write = std::move(outcome); });
  std::optional<CallOutcome> scan;
  world.process(server).link->call(std::string(kRegionScan), scan_body(), {.read_only = true},
                                   [&](CallOutcome outcome) { scan = std::move(outcome); });
  world.settle();

  const auto close = world.order(RemoteKind::kCloseRegion, server, kRegion);
  world.dispatch(server, {close});
  world.run_for(std::chrono::seconds(1));
  CHECK(world.reports.size() == 1);  // that of the opening
  CHECK_FALSE(write.has_value());

  world.process(server).holds_calls = false;
  REQUIRE(world.report_of(close).done);
  REQUIRE(write.has_value());
  CHECK(write->ok());
  REQUIRE(scan.has_value());
  CHECK(scan->ok());
}

TEST_CASE("a close of a region that is not here is reported as done") {
  World world;
  const ServerName server = world.start("rs1");
  const auto close = world.order(RemoteKind::kCloseRegion, server, kRegion);
  world.dispatch(server, {close});
  CHECK(world.report_of(close).done);
}

TEST_CASE("a nonce goes with its region when it moves, and comes back with it") {
  World world;
  const ServerName first = world.start("rs1");
  const ServerName second = world.start("rs2");
  world.open(kRegion, first);
  const WriteResult result = result_of(world.call(first, kRegionWrite, add_body("a"), once(1)));

  world.move(kRegion, second);
  CHECK(result_of(world.call(second, kRegionWrite, add_body("a"), once(1))) == result);
  CHECK(world.call(second, kRegionWrite, add_body("b"), once(1)).status.code() ==
        StatusCode::kKeyReused);
  CHECK(result_of(world.call(second, kRegionWrite, add_body("a"), once(2))).values == Values{"2"});

  world.move(kRegion, first);
  CHECK(result_of(world.call(first, kRegionWrite, add_body("a"), once(1))) == result);
  CHECK(result_of(world.call(first, kRegionWrite, add_body("a"), once(2))).values == Values{"2"});
}

TEST_CASE("a crash loses no write that was acknowledged, and no nonce") {
  World world;
  const ServerName first = world.start("rs1");
  const ServerName second = world.start("rs2");
  world.open(kRegion, first);
  const WriteResult result = result_of(world.call(first, kRegionWrite, add_body("a"), once(1)));
  result_of(world.call(first, kRegionWrite, put_body("b", "x"), once(2)));

  world.kill(first);
  world.recover(first, second);
  world.open(kRegion, second);

  CHECK(values_of(world.call(second, kRegionScan, scan_body(), reading())) == Values{"a=1", "b=x"});
  CHECK(result_of(world.call(second, kRegionWrite, add_body("a"), once(1))) == result);
  CHECK(result_of(world.call(second, kRegionWrite, add_body("a"), once(3))).values == Values{"2"});
}

TEST_CASE("a split of a log that was archived meanwhile is done") {
  World world;
  const ServerName first = world.start("rs1");
  const ServerName second = world.start("rs2");
  world.open(kRegion, first);
  world.kill(first);
  world.recover(first, second);

  RemoteOperation split = world.order(RemoteKind::kSplitLog, second);
  split.dead = first;
  split.log = "u1@0";
  world.dispatch(second, {split});
  CHECK(world.report_of(split).done);
  RemoteOperation other = world.order(RemoteKind::kSplitLog, second);
  other.dead = first;
  other.log = "u99@0";
  world.dispatch(second, {other});
  CHECK_FALSE(world.report_of(other).done);
}

TEST_CASE("a server that was fenced acknowledges no write and gives no stale answer") {
  World world;
  const ServerName old = world.start("rs1");
  const ServerName fresh = world.start("rs2");
  world.open(kRegion, old);
  result_of(world.call(old, kRegionWrite, put_body("a", "1"), once(1)));
  const bool reads_first = GENERATE(true, false);
  world.stop_master();  // nobody tells the old server
  REQUIRE(LogDirectories(world.files, world.layout).fence(old).ok());

  if (reads_first) {
    CHECK_FALSE(world.call(old, kRegionScan, scan_body(), reading()).ok());
  } else {
    const CallOutcome write = world.call(old, kRegionWrite, put_body("a", "2"), once(2));
    CHECK(write.kind == CallOutcome::Kind::kUnknown);
  }
  CHECK(world.process(old).end.has_value());
  CHECK(world.process(old).end->code() == StatusCode::kFenced);
  CHECK_FALSE(world.call(old, kRegionScan, scan_body(), reading()).ok());

  world.start_master(2);
  world.recover(old, fresh);
  world.open(kRegion, fresh);
  const Values values = values_of(world.call(fresh, kRegionScan, scan_body(), reading()));
  // Nobody was told what became of the second write.
  CHECK((values == Values{"a=1"} || (!reads_first && values == Values{"a=2"})));
}

TEST_CASE("a server that is told that it is dead ends itself") {
  World world;
  const ServerName server = world.start("rs1");
  SECTION("by a heartbeat") {
    world.dead.insert(server);
    world.run_until([&] { return world.process(server).end.has_value(); });
  }
  SECTION("by the answer to a report") {
    world.verdict = [](const RemoteReport&) { return ReportReply::Verdict::kDead; };
    world.dispatch(server, {world.order(RemoteKind::kOpenRegion, server, kRegion)});
    world.run_until([&] { return world.process(server).end.has_value(); });
  }
  CHECK(world.process(server).end->code() == StatusCode::kFenced);
  const auto reports = world.reports.size();
  world.run_for(std::chrono::seconds(20));
  CHECK(world.reports.size() == reports);
}

TEST_CASE("a server finds a master that has moved, and reports to it") {
  World world;
  const ServerName server = world.start("rs1");
  world.open(kRegion, server);
  world.stop_master();
  const auto close = world.order(RemoteKind::kCloseRegion, server, kRegion);
  world.dispatch(server, {close});
  world.run_for(std::chrono::seconds(3));
  CHECK(world.reports.size() == 1);  // that of the opening

  world.start_master(2);
  CHECK(world.report_of(close).done);
  world.run_until([&] { return world.process(server).server->status().epoch == 2; });
}

TEST_CASE("the catalogue's region takes writes from the newest master only") {
  World world;
  const ServerName server = world.start("rs1");
  world.make_table(meta_table(), {"f"}, {meta_region()});
  world.open(meta_region(), server);
  const std::string meta = meta_region().id;
  const auto write = [&](std::uint64_t number, std::uint64_t epoch) {
    return world.call(server, kRegionWrite, put_body("a", "1", epoch, meta), once(number));
  };

  CHECK(write(1, 1).ok());
  CHECK(write(2, 0).status.code() == StatusCode::kFenced);
  world.start_master(5);
  CHECK(world.call(server, kRegionScan, scan_body(meta, 5), reading()).ok());
  CHECK(write(3, 4).status.code() == StatusCode::kFenced);
  CHECK(world.call(server, kRegionScan, scan_body(meta, 4), reading()).status.code() ==
        StatusCode::kFenced);
  CHECK(world.call(server, kRegionScan, scan_body(meta), reading()).ok());
  CHECK(write(4, 5).ok());

  const auto names = world.files.list(world.layout.wals(server));
  REQUIRE(names.ok());
  CHECK(*names == Values{"m1", "u1"});
}

TEST_CASE("a new master that reads the catalogue sees what the old one has written") {
  World world;
  const ServerName server = world.start("rs1");
  world.make_table(meta_table(), {"f"}, {meta_region()});
  world.open(meta_region(), server);
  const std::string meta = meta_region().id;
  ServerProcess& process = world.process(server);
  // The old master's write waits for its sync.
  process.holds_meta_log = true;
  process.link->call(std::string(kRegionWrite), put_body("a", "1", 1, meta),
                     once(1, std::chrono::minutes(1)), [](const CallOutcome&) {});
  world.settle();
  world.start_master(2);
  std::optional<CallOutcome> page;
  process.link->call(std::string(kRegionScan), scan_body(meta, 2),
                     {.read_only = true, .timeout = std::chrono::minutes(1)},
                     [&](CallOutcome outcome) { page = std::move(outcome); });
  world.run_for(std::chrono::seconds(5));
  CHECK_FALSE(page.has_value());
  // A client does not wait for it.
  CHECK(values_of(world.call(server, kRegionScan, scan_body(meta), reading())).empty());

  process.holds_meta_log = false;
  world.run_until([&] { return page.has_value(); });

  CHECK(values_of(*page) == Values{"a=1"});
}

TEST_CASE("an epoch that no master has deposes nobody") {
  World world;
  const ServerName server = world.start("rs1");
  world.make_table(meta_table(), {"f", "info"}, {meta_region()});
  world.open(meta_region(), server);
  const std::string meta = meta_region().id;
  const auto forged = world.order(RemoteKind::kOpenRegion, server, kRegion);
  for (const std::uint64_t epoch : {std::uint64_t{2}, ~std::uint64_t{0}}) {
    CHECK_FALSE(world.call(server, kRegionScan, scan_body(meta, epoch), reading()).ok());
    CHECK_FALSE(
        world.call(server, kRegionWrite, put_body("a", "1", epoch, meta), once(epoch)).ok());
    CHECK_FALSE(world.try_dispatch(server, {forged}, epoch).ok());
  }

  CHECK(world.call(server, kRegionWrite, put_body("a", "1", 1, meta), once(1)).ok());
  world.open(kRegion, server);
  // A master that is new is heard at once, and not only with the next heartbeat.
  world.start_master(2);
  CHECK(world.call(server, kRegionScan, scan_body(meta, 2), reading()).ok());
  CHECK(world.reported_epoch == 1);
}

TEST_CASE("a new run of a server has a higher start code than every directory of its host") {
  World world;
  REQUIRE(
      world.files.make_directories(world.layout.splitting({"rs1", 4'000'000'000'000'000})).ok());
  const ServerName first = world.start("rs1");
  const ServerName second = world.start("rs1");
  CHECK(first.start_code == 4'000'000'000'000'001);
  CHECK(second.start_code == 4'000'000'000'000'002);
}

TEST_CASE("a server does not start where no master has begun a cluster") {
  World world;
  REQUIRE(world.files.remove_file(world.layout.cluster_id()).ok());
  ManualWorkQueue work;
  const auto started = RegionServer::start({.host = "rs1", .root = "root", .listen = "rs1:0"},
                                           {.transport = world.transport,
                                            .clock = world.clock,
                                            .files = world.files,
                                            .queues = {work, work, work, work, work, work, work},
                                            .on_end = [](const Status&) {}});
  CHECK(started.status().code() == StatusCode::kUnavailable);
  CHECK_THAT(started.status().to_string(),
             ContainsSubstring("no master has begun a cluster in root"));
  CHECK_FALSE(world.files.exists(world.layout.wals()));
}

TEST_CASE("a server without replication reports that operations of peers failed") {
  World world;
  const ServerName server = world.start("rs1");
  RemoteOperation refresh = world.order(RemoteKind::kRefreshPeer, server);
  refresh.peer = "p";
  world.dispatch(server, {refresh});
  const RemoteReport report = world.report_of(refresh);
  CHECK_FALSE(report.done);
  CHECK(report.reason.find("no replication here") != std::string::npos);
}

TEST_CASE("a full memory is flushed, and writes are refused while there is no room") {
  World world;
  const ServerName server =
      world.start("rs1", [](RegionServerOptions& options) { options.memory_max = 4000; });
  world.open(kRegion, server);
  const std::string value(3000, 'v');

  for (std::uint64_t i = 1; i <= 10; ++i) {
    const CallOutcome outcome =
        world.call(server, kRegionWrite, put_body("r" + std::to_string(i), value),
                   once(i, std::chrono::minutes(1)));
    INFO(to_string(outcome));
    REQUIRE(outcome.ok());
  }
  world.run_for(std::chrono::seconds(1));
  CHECK(world.process(server).server->status().regions.at(0).bytes < 60'000);
  const CallOutcome large =
      world.call(server, kRegionWrite, put_body("z", std::string(9000, 'v')), once(99));
  CHECK(large.kind == CallOutcome::Kind::kFailed);
}

TEST_CASE("logs are archived when the regions in them are flushed") {
  World world;
  const ServerName server = world.start("rs1", [](RegionServerOptions& options) {
    options.log_bytes_max = 2000;
    options.logs_max = 2;
  });
  world.open(kRegion, server);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    result_of(world.call(server, kRegionWrite, put_body("r", std::string(1000, 'v')), once(i)));
  }
  world.run_for(std::chrono::seconds(2));
  const auto names = world.files.list(world.layout.wals(server));
  REQUIRE(names.ok());
  CHECK(names->size() <= 3);
}

TEST_CASE("logs are archived when the regions in them are closed") {
  World world;
  const ServerName server =
      world.start("rs1", [](RegionServerOptions& options) { options.log_bytes_max = 2000; });
  world.open(kRegion, server);
  for (std::uint64_t i = 1; i <= 7; ++i) {
    result_of(world.call(server, kRegionWrite, put_body("r", std::string(1000, 'v')), once(i)));
  }
  CHECK(world.files.list(world.layout.wals(server)).value().size() >= 3);

  world.close(kRegion);
  world.run_for(std::chrono::seconds(1));

  CHECK(world.files.list(world.layout.wals(server)).value().size() == 1);
}

TEST_CASE("a write of a row that the region does not have sends the client elsewhere") {
  World world;
  const ServerName server = world.start("rs1");
  world.open(kRegion, server);
  const std::vector<RegionInfo> daughters = world.split(kRegion, "m");

  const CallOutcome outcome =
      world.call(server, kRegionWrite, put_body("x", "1", 0, daughters.at(0).id), once(1));

  CHECK(outcome.kind == CallOutcome::Kind::kFailed);
  CHECK(outcome.status.code() == StatusCode::kNotFound);
}

}  // namespace pv2::testing::region_server_test
