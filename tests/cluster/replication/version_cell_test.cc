// SPDX-License-Identifier: Apache-2.0
//
// Replicated writes at one region: each edit in any order and any number of times, across flushes,
// compactions, recoveries and a split.

#include "storage/version_cell.h"

#include "cluster/storage_fixture.h"
#include "pv2/base/random.h"
#include "pv2/testing/seeds.h"

namespace pv2::testing::version_cell_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test

const std::string kSender = "A";

Mutation edit(std::string row, std::uint64_t opening, std::uint64_t sequence, std::string value) {
  return {.kind = value.empty() ? MutationKind::kReplicatedDelete : MutationKind::kReplicatedPut,
          .row = std::move(row),
          .family = "f",
          .qualifier = "q",
          .value = std::move(value),
          .version = {opening, sequence}};
}

struct World {
  Disk disk;
  std::unique_ptr<StorageServer> server;
  std::uint64_t start_code = 0;

  World() {
    disk.make_table({whole_table()});
    begin();
  }
  void begin() {
    server = std::make_unique<StorageServer>(disk, ++start_code);
    REQUIRE(server->start().ok());
    REQUIRE(server->open(whole_table(), start_code).ok());
  }
  /// The server dies, and another one recovers what it has logged.
  void recover() {
    const ServerName dead = server->name();
    server.reset();
    REQUIRE(testing::recover(disk, dead).ok());
    begin();
  }
  Result<WriteResult> receive(std::vector<Mutation> mutations,
                              std::vector<std::string> origins = {kSender}) {
    std::optional<Result<WriteResult>> answer;
    server->region().write({.mutations = std::move(mutations), .origins = std::move(origins)},
                           *server->log,
                           [&](Result<WriteResult> result) { answer.emplace(std::move(result)); });
    server->work.run_all();
    REQUIRE(answer);
    return *answer;
  }
  std::string value(const std::string& row = "r") {
    const auto cells = server->region().get(row);
    REQUIRE(cells.ok());
    return cells->empty() ? "" : cells->front().value;
  }
};

}  // namespace

TEST_CASE("an edit that comes late, or again, has no effect") {
  World world;
  REQUIRE(world.receive({edit("r", 1, 5, "five")}).ok());
  REQUIRE(world.receive({edit("r", 1, 3, "three")}).ok());
  CHECK(world.value() == "five");
  REQUIRE(world.receive({edit("r", 1, 7, "")}).ok());
  CHECK(world.value().empty());
  REQUIRE(world.receive({edit("r", 1, 5, "five")}).ok());
  CHECK(world.value().empty());
  REQUIRE(world.receive({edit("r", 1, 8, "eight")}).ok());
  CHECK(world.value() == "eight");
}

TEST_CASE("a later opening is newer, whatever the sequence is") {
  World world;
  REQUIRE(world.receive({edit("r", 1, 500, "old")}).ok());
  REQUIRE(world.receive({edit("r", 2, 1, "new")}).ok());
  CHECK(world.value() == "new");
  REQUIRE(world.receive({edit("r", 1, 501, "late")}).ok());
  CHECK(world.value() == "new");
}

TEST_CASE("edits of one cell in one write are compared with each other") {
  World world;
  REQUIRE(world.receive({edit("r", 1, 5, "five"), edit("r", 1, 3, "three")}).ok());
  CHECK(world.value() == "five");
}

TEST_CASE("a client's own write stays until the next edit comes") {
  World world;
  REQUIRE(world.receive({edit("r", 1, 5, "five")}).ok());
  REQUIRE(world.server->write({put("r", "own")}).ok());
  REQUIRE(world.receive({edit("r", 1, 5, "five")}).ok());
  CHECK(world.value() == "own");
  REQUIRE(world.server->write({erase_row("r")}).ok());
  REQUIRE(world.receive({edit("r", 1, 4, "four")}).ok());
  CHECK(world.value().empty());
  REQUIRE(world.receive({edit("r", 1, 6, "six")}).ok());
  CHECK(world.value() == "six");
}

TEST_CASE("each sender has versions of its own") {
  World world;
  REQUIRE(world.receive({edit("r", 9, 9, "from A")}).ok());
  REQUIRE(world.receive({edit("r", 1, 1, "from B")}, {"B"}).ok());
  CHECK(world.value() == "from B");
  REQUIRE(world.receive({edit("r", 9, 9, "from A")}).ok());
  REQUIRE(world.receive({edit("r", 9, 9, "by C from A")}, {"A", "C"}).ok());
  CHECK(world.value() == "by C from A");
  REQUIRE(world.receive({edit("r", 9, 8, "by B")}, {"C", "B"}).ok());
  CHECK(world.value() == "by B");
}

TEST_CASE("a write that is half replicated is refused") {
  World world;
  CHECK(world.receive({edit("r", 1, 1, "x"), put("r", "y")}).status().code() ==
        StatusCode::kInvalidArgument);
  CHECK(world.receive({edit("r", 1, 1, "x")}, {}).status().code() == StatusCode::kInvalidArgument);
  CHECK(world.receive({put("r", "y")}, {"A"}).status().code() == StatusCode::kInvalidArgument);
  CHECK(world.value().empty());
}

TEST_CASE("versions are hidden from readers, and are no reason to split") {
  World world;
  REQUIRE(world.receive({edit("r", 1, 1, "x")}).ok());
  CHECK(world.server->region().get("r")->size() == 1);
  REQUIRE(world.receive({edit("r", 1, 2, "")}).ok());
  CHECK(world.server->region().get("r")->empty());
  CHECK_FALSE(world.server->region().split_point().value().has_value());
}

TEST_CASE("edits in any order, through files and recoveries: the newest of each cell is there") {
  const Seeds seeds = seeds_from_environment(20);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    INFO("PV2_TEST_SEED=" << seed);
    Random random(seed);
    std::vector<Mutation> edits;
    std::map<std::string, std::string> newest;
    for (std::uint64_t sequence = 1; sequence <= 40; ++sequence) {
      const std::string row(1, static_cast<char>('a' + random.below(4)));
      const std::string text = random.below(3) == 0 ? "" : std::to_string(sequence);
      edits.push_back(edit(row, 1 + sequence / 10, sequence % 10, text));
      newest[row] = text;
    }
    World world;
    // Each edit at least once.
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < edits.size(); ++i) order.push_back(i);
    for (int i = 0; i < 40; ++i) order.push_back(random.below(edits.size()));
    while (!order.empty()) {
      const std::size_t at = random.below(order.size());
      REQUIRE(world.receive({edits[order[at]]}).ok());
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(at));
      switch (random.below(12)) {
        case 0:
          REQUIRE(world.server->flush().ok());
          break;
        case 1:
          REQUIRE(world.server->compact().ok());
          break;
        case 2:
          world.recover();
          break;
        default:
          break;
      }
    }
    for (const auto& [row, text] : newest) CHECK(world.value(row) == text);
  }
}

TEST_CASE("the daughters of a split know the versions of their rows") {
  World world;
  REQUIRE(world.receive({edit("a", 1, 5, "five"), edit("z", 1, 5, "")}).ok());
  REQUIRE(world.server->close().ok());
  const RegionInfo low{whole_table().table, "00000000000000b1", "", "m"};
  const RegionInfo high{whole_table().table, "00000000000000b2", "m", ""};
  REQUIRE(world.disk.tables.make_daughters(whole_table(), {low, high}).ok());
  for (const RegionInfo& daughter : {low, high}) REQUIRE(world.server->open(daughter, 7).ok());
  for (const auto& [id, row] : {std::pair{low.id, "a"}, std::pair{high.id, "z"}}) {
    bool is_done = false;
    world.server->region(id).write(
        {.mutations = {edit(row, 1, 4, "four")}, .origins = {kSender}}, *world.server->log,
        [&](const Result<WriteResult>& result) { is_done = result.ok(); });
    world.server->work.run_all();
    CHECK(is_done);
  }
  CHECK(world.server->region(low.id).get("a")->front().value == "five");
  CHECK(world.server->region(high.id).get("z")->empty());
}

TEST_CASE("the value of a version cell is read back") {
  VersionCell versions;
  CHECK(versions.advance("A", {1, 2}));
  CHECK(versions.advance("B", {3, 4}));
  CHECK_FALSE(versions.advance("A", {1, 2}));
  CHECK(versions.advance("A", {1, 3}));
  CHECK(decode_versions(encode_versions(versions)) == versions);
  CHECK_FALSE(decode_versions("x").has_value());
}

}  // namespace pv2::testing::version_cell_test
