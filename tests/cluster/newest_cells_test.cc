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
    NewestCells cells(std::make_unique<CountedCursor>(MemStore::cursor(store), moves), visible);
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

}  // namespace pv2::testing::newest_cells_test
