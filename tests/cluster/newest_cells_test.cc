// SPDX-License-Identifier: Apache-2.0
//
// How much work a walk over cells is, and what a write does with rows that need too much of it.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "storage/cell_cursor.h"
#include "storage/mem_store.h"
#include "storage/write_computation.h"
#include "storage_fixture.h"

namespace pv2::testing::newest_cells_test {
namespace {

using namespace cluster;  // NOLINT: the layer under test

/// Counts what a walk does below.
class CountedCursor final : public CellCursor {
 public:
  CountedCursor(std::unique_ptr<CellCursor> below, std::size_t& moves)
      : below_(std::move(below)), moves_(moves) {}
  void seek(std::string_view key) override {
    ++moves_;
    below_->seek(key);
  }
  void next() override {
    ++moves_;
    below_->next();
  }
  [[nodiscard]] bool valid() const override { return below_->valid(); }
  [[nodiscard]] std::string_view key() const override { return below_->key(); }
  [[nodiscard]] std::string_view value() const override { return below_->value(); }
  [[nodiscard]] Status status() const override { return below_->status(); }

 private:
  const std::unique_ptr<CellCursor> below_;
  std::size_t& moves_;
};

StoredCell cell(const std::string& row, const std::string& qualifier, CellKind kind) {
  return {.row = row, .family = "f", .qualifier = qualifier, .kind = kind, .value = ""};
}

}  // namespace

TEST_CASE("cluster: a walk passes a cell with many versions in a few steps") {
  const auto store = std::make_shared<MemStore>();
  for (std::uint64_t sequence = 1; sequence <= 10'000; ++sequence)
    store->add({cell("a", "q", CellKind::kPut)}, sequence);
  store->add({cell("b", "q", CellKind::kPut)}, 20'000);
  store->add({cell("c", "q", CellKind::kPut)}, 3);

  for (const std::uint64_t visible : {std::uint64_t{20'000}, std::uint64_t{5000}}) {
    std::size_t moves = 0;
    NewestCells cells(std::make_unique<CountedCursor>(MemStore::cursor(store), moves),
                      space_end(CellSpace::kCells), visible);
    std::string rows;
    for (cells.seek(row_key(CellSpace::kCells, "")); cells.valid(); cells.next()) {
      rows += decode_cell(cells.key(), cells.value())->cell.row;
      if (rows == "a")
        CHECK(sequence_of_key(cells.key()) == std::min<std::uint64_t>(visible, 10'000));
    }
    CHECK(rows == (visible == 20'000 ? "abc" : "ac"));
    CHECK(moves < 30);
  }
}

TEST_CASE("cluster: the deletion of a row with too many deleted cells is refused") {
  const auto store = std::make_shared<MemStore>();
  for (int i = 0; i < 5000; ++i)
    store->add({cell("a", std::to_string(10'000 + i), CellKind::kTombstone)}, 1);
  store->add({cell("a", "z", CellKind::kPut)}, 2);
  const auto all = [&] { return MemStore::cursor(store); };

  WriteComputation refused(all, "", NewestCells::kLooksLeast);
  CHECK(refused.apply(erase_row("a")).code() == StatusCode::kFailedPrecondition);

  WriteComputation usual(all);
  REQUIRE(usual.apply(erase_row("a")).ok());
  CHECK(usual.cells().size() == 1);
}

TEST_CASE("cluster: a write does not walk over the deleted cells behind those that it changes") {
  const auto store = std::make_shared<MemStore>();
  store->add({cell("a", "q", CellKind::kPut), cell("b", "q", CellKind::kPut)}, 1);
  store->add({cell("b", "q", CellKind::kTombstone)}, 2);
  std::vector<StoredCell> behind;
  for (int i = 0; i < 100'000; ++i)
    behind.push_back(cell("m" + std::to_string(i), "q", CellKind::kTombstone));
  store->add(behind, 3);
  std::size_t moves = 0;
  const auto all = [&] { return std::make_unique<CountedCursor>(MemStore::cursor(store), moves); };

  for (const char* const row : {"a", "b", "c"}) {
    for (const Mutation& mutation : {append(row, "1"), increment(row, 1), erase_row(row)}) {
      // An increment of an empty value is refused, after the look at it.
      static_cast<void>(WriteComputation(all).apply(mutation));
      CHECK(std::exchange(moves, 0) < 10);
    }
  }
  WriteComputation of_deleted(all);
  REQUIRE(of_deleted.apply(increment("b", 7)).ok());
  CHECK(of_deleted.take_values() == std::vector<std::string>{"7"});
}

TEST_CASE("cluster: a walk ends at its end, and not at the next cell that it would show") {
  const auto store = std::make_shared<MemStore>();
  store->add({cell("a", "q", CellKind::kPut), cell("b", "q", CellKind::kTombstone)}, 1);
  for (int i = 0; i < 10'000; ++i)
    store->add({cell("m" + std::to_string(i), "q", CellKind::kTombstone)}, 1);
  store->add({cell("z", "q", CellKind::kPut)}, 1);
  std::size_t moves = 0;

  NewestCells cells(std::make_unique<CountedCursor>(MemStore::cursor(store), moves),
                    row_key(CellSpace::kCells, "m"), 1);
  cells.seek(row_key(CellSpace::kCells, "a"));
  REQUIRE(cells.valid());
  cells.next();

  CHECK_FALSE(cells.valid());
  CHECK(moves < 20);
}

}  // namespace pv2::testing::newest_cells_test
