// SPDX-License-Identifier: Apache-2.0
//
// Which edits are shipped, and how they are divided into writes.

#include "replication/edit_batch.h"

#include "support/catch.h"

namespace pv2::testing::edit_batch_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test

const TableName kTable{"default", "t"};

WalEntry entry(std::uint64_t sequence, std::vector<StoredCell> cells,
               std::vector<std::string> origins = {}, TableName table = kTable) {
  return {.region_id = "r",
          .table = std::move(table),
          .sequence = sequence,
          .cells = std::move(cells),
          .opening = 3,
          .origins = std::move(origins)};
}
StoredCell cell(std::string row, std::string value) {
  return {.row = std::move(row), .family = "f", .qualifier = "q", .value = std::move(value)};
}
EditFilter filter(std::vector<TableName> tables = {}) {
  return {.tables = std::move(tables), .own_cluster = "me", .peer_cluster = "you"};
}

}  // namespace

TEST_CASE("of each cell the newest edit is shipped, with its version") {
  StoredCell gone = cell("b", "");
  gone.kind = CellKind::kTombstone;
  const auto groups = edits_to_ship(
      {entry(1, {cell("a", "1"), cell("b", "1")}), entry(2, {cell("a", "2"), gone})}, filter());
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].table == kTable);
  CHECK(groups[0].origins == std::vector<std::string>{"me"});
  REQUIRE(groups[0].mutations.size() == 2);
  CHECK(groups[0].mutations[0].kind == MutationKind::kReplicatedPut);
  CHECK(groups[0].mutations[0].value == "2");
  CHECK(groups[0].mutations[0].version == EditVersion{3, 2});
  CHECK(groups[0].mutations[1].kind == MutationKind::kReplicatedDelete);
}

TEST_CASE("hidden cells, tables of the system and tables of others are not shipped") {
  StoredCell hidden = cell("a", "x");
  hidden.space = CellSpace::kNonces;
  StoredCell version = cell("a", "x");
  version.space = CellSpace::kVersions;
  CHECK(edits_to_ship({entry(1, {hidden, version})}, filter()).empty());
  CHECK(edits_to_ship({entry(1, {cell("a", "1")}, {}, {"system", "x"})}, filter()).empty());
  CHECK(edits_to_ship({entry(1, {cell("a", "1")})}, filter({{"default", "other"}})).empty());
  CHECK(edits_to_ship({entry(1, {cell("a", "1")})}, filter({kTable})).size() == 1);
}

TEST_CASE("an edit does not go to a cluster through which it came, and goes on to others") {
  CHECK(edits_to_ship({entry(1, {cell("a", "1")}, {"you"})}, filter()).empty());
  CHECK(edits_to_ship({entry(1, {cell("a", "1")}, {"you", "other"})}, filter()).empty());
  const auto groups =
      edits_to_ship({entry(1, {cell("a", "1")}, {"other"}), entry(2, {cell("a", "2")})}, filter());
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].origins == std::vector<std::string>{"me"});
  CHECK(groups[1].origins == std::vector<std::string>{"other", "me"});
}

TEST_CASE("writes are of one region each, keep rows together, and stay within their limits") {
  const auto edit = [](std::string row, std::size_t bytes = 1) {
    return Mutation{.kind = MutationKind::kReplicatedPut,
                    .row = std::move(row),
                    .family = "f",
                    .value = std::string(bytes, 'x')};
  };
  CHECK(divide_edits({}, {""}).empty());
  const auto by_region = divide_edits({edit("a"), edit("b"), edit("m"), edit("z")}, {"", "m", "x"});
  REQUIRE(by_region.size() == 3);
  CHECK(by_region[0].size() == 2);
  CHECK(by_region[1].front().row == "m");

  const std::size_t half = std::size_t{600} << 10;
  CHECK(divide_edits({edit("a", half), edit("b", half)}, {""}).size() == 2);
  CHECK(divide_edits({edit("a", half), edit("a", half)}, {""}).size() == 1);

  std::vector<Mutation> many(kMutationsMax + 1, edit("a"));
  std::size_t count = 0;
  for (const auto& write : divide_edits(many, {""})) {
    CHECK(check_mutations(write).ok());
    count += write.size();
  }
  CHECK(count == many.size());
  for (const auto& write : divide_edits(std::vector<Mutation>(20, edit("a", kValueBytesMax)), {""}))
    CHECK(check_mutations(write).ok());
}

}  // namespace pv2::testing::edit_batch_test
