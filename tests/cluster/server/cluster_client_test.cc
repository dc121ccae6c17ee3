// SPDX-License-Identifier: Apache-2.0
//
// What a client sees of a cluster whose regions move, are split and are recovered.

#include <pv2/procedures/init_meta.h>
#include <pv2/rpc/fault_plan.h>

#include <algorithm>
#include <chrono>

#include "cluster/server/server_world.h"
#include "wire/catalogue_rows.h"
#include "wire/methods.h"

namespace pv2::testing::cluster_client_test {
namespace {

using namespace cluster;       // NOLINT: the layer under test
using namespace server_world;  // NOLINT

const TableName kTable{"default", "t"};
const RegionInfo kLeft{kTable, "r1", "", "m"};
const RegionInfo kRight{kTable, "r2", "m", ""};
using Values = std::vector<std::string>;

/// Loses answers to writes, and calls that flush or compact, which it counts.
template <class World>
class LostAnswers final : public FaultPlan {
 public:
  explicit LostAnswers(World& world) : world_(world) {}
  Fate fate(const PassingFrame& frame) override {
    const bool is_rewrite = frame.method == kRegionFlush || frame.method == kRegionCompact;
    if (is_rewrite && frame.kind == FrameKind::kCall) {
      ++world_.rewrites;
      return {.copies = world_.loses_rewrites ? 0U : 1U};
    }
    if (frame.direction != Direction::kToClient || frame.method != kRegionWrite) return {};
    if (world_.answers_to_lose == 0 && !world_.loses_answers) return {};
    if (world_.answers_to_lose != 0) --world_.answers_to_lose;
    return {.copies = 0};
  }

 private:
  World& world_;
};

/// Two servers; the catalogue and the left region are on the first, the right one on the second.
struct World : ServerWorld {
  std::uint64_t answers_to_lose = 0;
  bool loses_answers = false;
  int rewrites = 0;
  bool loses_rewrites = false;
  ServerName first;
  ServerName second;
  std::unique_ptr<ClusterClient> client;

  World() {
    plan = std::make_shared<LostAnswers<World>>(*this);
    make_table(kTable, {"f"}, {kLeft, kRight});
    make_table(meta_table(), meta_descriptor().families, {meta_region()});
    first = start("rs1");
    second = start("rs2");
    open(meta_region(), first);
    open(kLeft, first);
    open(kRight, second);
    client = connect();
  }
  ~World() { client.reset(); }

  WriteOutcome write(Mutation mutation, WriteOptions options = {}) {
    return answer<WriteOutcome>([&](std::function<void(WriteOutcome)> done) {
      client->write(kTable, {std::move(mutation)}, options, std::move(done));
    });
  }
  WriteOutcome add(const std::string& row, WriteOptions options = {}) {
    return write({MutationKind::kIncrement, row, "f", "n", "", 1}, options);
  }
  WriteOutcome put(const std::string& row, const std::string& value) {
    return write({MutationKind::kPut, row, "f", "q", value});
  }
  Result<ScanPage> scan(const Scan& range = {}) {
    return answer<Result<ScanPage>>([&](std::function<void(Result<ScanPage>)> done) {
      client->scan(kTable, range, std::move(done));
    });
  }
  Values values(const Scan& range = {}) {
    const auto page = scan(range);
    REQUIRE(page.status().to_string() == "OK");
    Values found;
    for (const Cell& cell : page->cells) found.push_back(cell.row + "=" + cell.value);
    if (page->next_row) found.push_back("then " + *page->next_row);
    return found;
  }
};

}  // namespace

TEST_CASE("a client writes and reads rows of several regions") {
  World world;
  for (const char* const row : {"a", "b", "m", "z"}) REQUIRE(world.put(row, row).ok());

  CHECK(world.values() == Values{"a=a", "b=b", "m=m", "z=z"});
  CHECK(world.values({.rows_max = 3}) == Values{"a=a", "b=b", "m=m", "then z"});
  CHECK(world.values({.rows_max = 2}) == Values{"a=a", "b=b", "then m"});
  CHECK(world.values({.start_row = "b", .end_row = "n"}) == Values{"b=b", "m=m"});
  CHECK(world.values({.start_row = "n", .end_row = "o"}).empty());
}

TEST_CASE("a row that is larger than any message is read in parts") {
  World world;
  const std::string value(cluster::kValueBytesMax, 'v');
  for (int i = 0; i < 17; ++i) {
    REQUIRE(world.write({MutationKind::kPut, "b", "f", std::to_string(10 + i), value}).ok());
  }
  REQUIRE(world.put("c", "3").ok());

  const auto cells = world.answer<Result<std::vector<Cell>>>(
      [&](auto done) { world.client->get(kTable, "b", {}, std::move(done)); });

  REQUIRE(cells.status().to_string() == "OK");
  REQUIRE(cells->size() == 17);
  for (std::size_t i = 0; i < 17; ++i) REQUIRE((*cells)[i].qualifier == std::to_string(10 + i));
  // A scan counts it as one row.
  const auto page = world.scan({.rows_max = 2, .bytes_max = 30U << 20});
  REQUIRE(page.status().to_string() == "OK");
  CHECK(page->cells.size() == 18);
  const auto part = world.scan({.rows_max = 2, .bytes_max = 3U << 20});
  REQUIRE(part.status().to_string() == "OK");
  REQUIRE(part->divides_row());
  const auto rest = world.scan(rest_of({.rows_max = 2, .bytes_max = 30U << 20}, *part));
  REQUIRE(rest.status().to_string() == "OK");
  CHECK(part->cells.size() + rest->cells.size() == 18);
}

TEST_CASE("the status of a server with long keys comes in parts") {
  World world;
  const std::string padding(4000, 'k');
  const auto key = [&](int i) { return padding + std::to_string(1000 + i); };
  const TableName table{"default", "long"};
  std::vector<RegionInfo> regions;
  for (int i = 0; i < 300; ++i) {
    regions.push_back({table, "long" + std::to_string(1000 + i), key(i), key(i + 1)});
  }
  world.make_table(table, {"f"}, regions);
  for (const RegionInfo& region : regions) world.open(region, world.second);
  const auto part = world.call(world.second, cluster::kServerStatus, "", {.read_only = true});
  REQUIRE(part.ok());
  REQUIRE(part.body.size() < 2U << 20);

  const auto status = world.answer<Result<ServerStatus>>(
      [&](auto done) { world.client->server_status(world.second, std::move(done)); });

  REQUIRE(status.status().to_string() == "OK");
  CHECK(status->next_region.empty());
  CHECK(status->epoch == world.epoch);
  std::vector<std::string> ids;
  for (const auto& region : status->regions) ids.push_back(region.region.id);
  CHECK(std::ranges::is_sorted(ids));
  CHECK(std::ranges::count_if(ids, [](const std::string& id) { return id.starts_with("long"); }) ==
        300);
}

TEST_CASE("a client finds a region that has moved") {
  World world;
  REQUIRE(world.put("a", "1").ok());
  world.move(kLeft, world.second);
  CHECK(world.values() == Values{"a=1"});
  REQUIRE(world.put("a", "2").ok());
  world.move(meta_region(), world.second);
  world.move(kLeft, world.first);
  CHECK(world.values() == Values{"a=2"});
}

TEST_CASE("a client waits for a region that is nowhere") {
  World world;
  REQUIRE(world.put("a", "1").ok());
  world.close(kLeft);
  std::optional<WriteOutcome> outcome;
  world.client->write(kTable, {{MutationKind::kPut, "a", "f", "q", "2"}}, {},
                      [&](WriteOutcome given) { outcome = std::move(given); });
  world.run_for(std::chrono::seconds(3));
  CHECK_FALSE(outcome.has_value());

  world.open(kLeft, world.second);
  world.run_until([&] { return outcome.has_value(); });
  CHECK(outcome->ok());
}

TEST_CASE("a write whose region never comes has definitely failed") {
  World world;
  world.close(kLeft);
  const WriteOutcome outcome = world.add("a");
  CHECK(outcome.kind == WriteOutcome::Kind::kFailed);
}

TEST_CASE("a table that is not there is not waited for") {
  World world;
  const auto outcome = world.answer<WriteOutcome>([&](std::function<void(WriteOutcome)> done) {
    world.client->write({"default", "none"}, {{MutationKind::kPut, "a", "f", "q", "1"}}, {},
                        std::move(done));
  });
  CHECK(outcome.kind == WriteOutcome::Kind::kFailed);
  CHECK(outcome.status.code() == StatusCode::kNotFound);
}

TEST_CASE("a write that cannot be done is told so, and leaves its nonce free") {
  World world;
  const WriteOutcome wrong = world.write({MutationKind::kPut, "a", "no", "q", "1"});
  CHECK(wrong.kind == WriteOutcome::Kind::kFailed);
  CHECK(wrong.status.code() == StatusCode::kInvalidArgument);
  const auto apart = world.answer<WriteOutcome>([&](std::function<void(WriteOutcome)> done) {
    world.client->write(
        kTable,
        {{MutationKind::kPut, "a", "f", "q", "1"}, {MutationKind::kPut, "z", "f", "q", "1"}}, {},
        std::move(done));
  });
  CHECK(apart.kind == WriteOutcome::Kind::kFailed);
  CHECK(apart.status.code() == StatusCode::kFailedPrecondition);
  CHECK(world.write({MutationKind::kPut, "a", "f", "q", "1"}, {.nonce = wrong.nonce}).ok());
}

TEST_CASE("a write whose answers are lost is done once") {
  World world;
  REQUIRE(world.add("a").ok());
  world.answers_to_lose = 3;
  const WriteOutcome outcome = world.add("a");
  INFO(outcome.status.to_string());
  REQUIRE(outcome.ok());
  CHECK(outcome.result.values == Values{"2"});
  CHECK(world.values() == Values{"a=2"});
}

TEST_CASE("a write without an answer is resumed after a split, and was done once") {
  World world;
  REQUIRE(world.add("a").ok());
  REQUIRE(world.add("g").ok());
  world.loses_answers = true;
  const WriteOutcome lost = world.add("g", {.timeout = std::chrono::seconds(1)});
  REQUIRE(lost.kind == WriteOutcome::Kind::kUnknown);

  world.loses_answers = false;
  world.split(kLeft, "d");
  const WriteOutcome again =
      world.add("g", {.nonce = lost.nonce, .expires_at = lost.expires_at, .resumed = true});
  INFO(again.status.to_string());
  REQUIRE(again.ok());
  CHECK(again.result.values == Values{"2"});
  CHECK(world.add("g").result.values == Values{"3"});
}

TEST_CASE("a client survives the crash of a server, with every acknowledged write") {
  World world;
  for (int i = 1; i <= 5; ++i) REQUIRE(world.add("a").ok());
  world.answers_to_lose = 1;
  std::optional<WriteOutcome> outcome;
  world.client->write(kTable, {{MutationKind::kIncrement, "a", "f", "n", "", 1}}, {},
                      [&](WriteOutcome given) { outcome = std::move(given); });
  world.run_for(std::chrono::milliseconds(20));
  const ServerName dead = world.first;
  world.kill(dead);
  world.recover(dead, world.second);
  world.open(meta_region(), world.second);
  world.open(kLeft, world.second);

  world.run_until([&] { return outcome.has_value(); });
  INFO(outcome->status.to_string());
  REQUIRE(outcome->ok());
  CHECK(outcome->result.values == Values{"6"});
  CHECK(world.add("a").result.values == Values{"7"});
}

TEST_CASE("a client tells of regions, servers and tables") {
  World world;
  const auto regions = world.answer<Result<std::vector<RegionRow>>>(
      [&](std::function<void(Result<std::vector<RegionRow>>)> done) {
        world.client->regions_of(kTable, std::move(done));
      });
  REQUIRE(regions.ok());
  REQUIRE(regions->size() == 2);
  CHECK(regions->at(1).region == kRight);
  CHECK(regions->at(1).server == world.second);

  const auto servers =
      world.answer<Result<ServerList>>([&](std::function<void(Result<ServerList>)> done) {
        world.client->servers(std::move(done));
      });
  REQUIRE(servers.ok());
  CHECK(servers->live.size() == 2);
  const auto status =
      world.answer<Result<ServerStatus>>([&](std::function<void(Result<ServerStatus>)> done) {
        world.client->server_status(world.second, std::move(done));
      });
  REQUIRE(status.ok());
  CHECK(status->regions.size() == 1);
  const auto tables = world.answer<Result<std::vector<TableRow>>>(
      [&](std::function<void(Result<std::vector<TableRow>>)> done) {
        world.client->tables(std::move(done));
      });
  REQUIRE(tables.ok());
  CHECK(tables->empty());  // the test's master writes rows of regions only
}

TEST_CASE("a client flushes, compacts and divides a region") {
  World world;
  for (int i = 0; i < 20; ++i) REQUIRE(world.put("a" + std::to_string(i), "v").ok());
  const auto ask = [&](auto verb) {
    return world.answer<Status>([&](std::function<void(Status)> done) {
      (world.client.get()->*verb)(kLeft, std::move(done), {});
    });
  };
  using Verb = void (ClusterClient::*)(const RegionInfo&, ClusterClient::Done<Status>,
                                       std::optional<Duration>);
  CHECK(ask(static_cast<Verb>(&ClusterClient::flush)).ok());
  CHECK(ask(static_cast<Verb>(&ClusterClient::compact)).ok());
  const auto point = [&](const RegionInfo& region) {
    return world.answer<Result<std::string>>([&](std::function<void(Result<std::string>)> done) {
      world.client->split_point(region, std::move(done));
    });
  };
  REQUIRE(point(kLeft).ok());
  CHECK(point(kLeft)->starts_with("a"));
  CHECK(*point(kRight) == "");
  world.split(kLeft, "a15");
  CHECK(point(kLeft).status().code() == StatusCode::kNotFound);
}

TEST_CASE("a flush whose server dies is done where the region is next") {
  World world;
  REQUIRE(world.put("a", "1").ok());
  const ServerName dead = world.first;
  world.loses_rewrites = true;
  std::optional<Status> flushed;
  world.client->flush(kLeft, [&](Status status) { flushed = std::move(status); });
  if (GENERATE(true, false)) world.run_for(std::chrono::seconds(1));  // it was sent
  world.kill(dead);
  world.run_for(std::chrono::seconds(6));
  CHECK_FALSE(flushed.has_value());
  world.loses_rewrites = false;
  world.recover(dead, world.second);
  world.open(meta_region(), world.second);
  world.open(kLeft, world.second);

  world.run_until([&] { return flushed.has_value(); });
  CHECK(flushed->to_string() == "OK");
}

TEST_CASE("a compaction that takes long is begun once, and again where the region has moved") {
  World world;
  REQUIRE(world.put("a", "1").ok());
  world.loses_rewrites = true;
  std::optional<Status> compacted;
  const auto done = [&](Status status) { compacted = std::move(status); };
  world.client->compact(kLeft, done, std::chrono::minutes(10));
  world.run_for(std::chrono::minutes(1));
  CHECK(world.rewrites == 1);
  CHECK_FALSE(compacted.has_value());

  world.loses_rewrites = false;
  world.move(kLeft, world.second);
  world.run_until([&] { return compacted.has_value(); });
  CHECK(compacted->to_string() == "OK");
  CHECK(world.rewrites == 2);
}

TEST_CASE("verbs without an answer get one when the client ends") {
  World world;
  world.close(kLeft);
  std::optional<WriteOutcome> outcome;
  world.client->write(kTable, {{MutationKind::kPut, "a", "f", "q", "2"}}, {},
                      [&](WriteOutcome given) { outcome = std::move(given); });
  const bool begun = GENERATE(true, false);
  if (begun) world.run_for(std::chrono::seconds(1));
  world.client.reset();
  REQUIRE(outcome.has_value());
  CHECK(outcome->status.code() == StatusCode::kStopping);
  world.run_for(std::chrono::seconds(1));
}

TEST_CASE("a verb that waits is refused on the thread of the network") {
  World world;
  CHECK(world.client->put(kTable, "a", "f", "q", "v").status.code() ==
        StatusCode::kFailedPrecondition);
}

}  // namespace pv2::testing::cluster_client_test
