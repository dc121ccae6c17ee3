// SPDX-License-Identifier: Apache-2.0
//
// One region without crashes: mutations, scans, flush and compaction, visibility, openings.

#include "storage/region.h"

#include <algorithm>
#include <limits>

#include "storage_fixture.h"

namespace pv2::testing::region_test {
namespace {

const TableName kTable = whole_table().table;

// One open region on one server.
struct OpenRegion {
  OpenRegion() : server(disk, 1) {
    disk.make_table({whole_table()});
    REQUIRE(server.start().ok());
    REQUIRE(server.open(whole_table(), 1).ok());
  }
  std::string value(const std::string& row) {
    const auto cells = server.region().get(row, {"f"});
    REQUIRE(cells.ok());
    return cells->empty() ? "none" : cells->front().value;
  }
  Disk disk;
  StorageServer server;
};

cluster::WriteNonce nonce(std::uint64_t value) { return {.nonce = {7, value}, .fingerprint = {}}; }

std::vector<std::uint64_t> nonces_of(const cluster::Region& region) {
  const auto found = region.nonces();
  REQUIRE(found.ok());
  std::vector<std::uint64_t> values;
  for (const cluster::NonceCell& cell : *found) values.push_back(cell.nonce.value);
  return values;
}

}  // namespace

TEST_CASE("cluster: increments are exact at both ends of 64 bits, and refuse what is no number") {
  OpenRegion open;
  StorageServer& server = open.server;
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

  REQUIRE(server.write({increment("n", kMax - 1)})->values ==
          std::vector{std::to_string(kMax - 1)});
  REQUIRE(server.write({increment("n", 1)}).ok());
  REQUIRE(server.write({increment("n", 1)}).status().code() == StatusCode::kInvalidArgument);
  REQUIRE(open.value("n") == std::to_string(kMax));
  REQUIRE(server.write({increment("n", std::numeric_limits<std::int64_t>::min())}).ok());
  REQUIRE(open.value("n") == "-1");
  for (const char* text : {"", "1x", "+1", " 1", "9223372036854775808", "0x10"}) {
    INFO(text);
    REQUIRE(server.write({put("n", text)}).ok());
    REQUIRE(server.write({increment("n", 1)}).status().code() == StatusCode::kInvalidArgument);
    REQUIRE(open.value("n") == text);
  }
}

TEST_CASE("cluster: a write is computed from writes that are not durable yet") {
  OpenRegion open;
  std::vector<std::string> values;
  for (int i = 0; i < 3; ++i) {
    open.server.region().write({.mutations = {increment("n", 1)}}, *open.server.log,
                               [&](const Result<cluster::WriteResult>& done) {
                                 REQUIRE(done.ok());
                                 values.push_back(done->values.front());
                               });
  }
  REQUIRE(open.value("n") == "none");  // nothing of it is durable

  open.server.work.run_all();

  REQUIRE(values == std::vector<std::string>{"1", "2", "3"});
  REQUIRE(open.value("n") == "3");
}

TEST_CASE("cluster: the mutations of a write see each other, and happen together or not at all") {
  OpenRegion open;
  StorageServer& server = open.server;

  const auto done = server.write({put("a", "x"), append("a", "y"), increment("b", 5),
                                  increment("b", 5), put("c", "z"), erase_row("c")});
  REQUIRE(done.ok());
  REQUIRE(done->values == std::vector<std::string>{"", "xy", "5", "10", "", ""});
  REQUIRE(rows_of(server.region()) == std::map<std::string, std::string>{{"a", "xy"}, {"b", "10"}});

  REQUIRE(!server.write({put("d", "1"), increment("a", 1)}).ok());
  REQUIRE(open.value("d") == "none");
}

TEST_CASE("cluster: the deletion of a row takes all its cells, from memory and from files") {
  OpenRegion open;
  StorageServer& server = open.server;
  REQUIRE(server.write({put("a", "1"), put("a", "2", "other"), put("ab", "3")}).ok());
  REQUIRE(server.flush().ok());
  REQUIRE(server.write({put("a", "4", "third")}).ok());

  REQUIRE(server.write({erase_row("a")}).ok());

  REQUIRE(server.region().get("a")->empty());
  REQUIRE(server.region().get("ab")->size() == 1);
  REQUIRE(server.flush().ok());
  REQUIRE(server.compact().ok());
  REQUIRE(server.region().get("a")->empty());
  REQUIRE(server.region().file_count() == 1);
  REQUIRE(server.write({erase_row("ab")}).ok());
  REQUIRE(server.flush().ok());
  REQUIRE(server.region().file_count() == 2);
  REQUIRE(server.compact().ok());
  REQUIRE(server.region().file_count() == 0);  // not even tombstones are left
}

TEST_CASE("cluster: a write whose result would be too large is refused, and nothing is done") {
  OpenRegion open;
  StorageServer& server = open.server;
  const std::string large(cluster::kValueBytesMax - 32, 'x');
  std::vector<Mutation> appends;
  for (char row = 'a'; row < 'a' + 20; ++row) {
    REQUIRE(server.write({put({row}, large)}).ok());
    appends.push_back(append({row}, "y"));
  }
  const std::uint64_t before = server.region().visible_sequence();

  // Over many cells, and over one cell again and again.
  REQUIRE(server.write(appends).status().code() == StatusCode::kInvalidArgument);
  REQUIRE(server.write(std::vector(20, append("a", "y"))).status().code() ==
          StatusCode::kInvalidArgument);

  REQUIRE(server.region().visible_sequence() == before);
  REQUIRE(open.value("a") == large);
  appends.resize(4);
  const auto done = server.write(appends, nonce(1));
  REQUIRE(done.ok());
  REQUIRE(done->values == std::vector(4, large + "y"));
}

TEST_CASE("cluster: the deletion of a row that changes too many bytes or cells is refused") {
  OpenRegion open;
  StorageServer& server = open.server;
  const std::string padding(4000, 'p');
  for (int part = 0; part < 3; ++part) {
    std::vector<Mutation> puts;
    for (int i = 0; i < 1000; ++i)
      puts.push_back(put("long", "v", padding + std::to_string(1000 * part + i)));
    REQUIRE(server.write(puts).ok());
  }
  // Each deletion looks at all the cells that the write has put into the row.
  std::vector<Mutation> wide;
  for (int i = 0; i < 40'000; ++i) wide.push_back(put("wide", "v", std::to_string(i)));
  wide.push_back(erase_row("wide"));
  REQUIRE(server.write(wide).ok());
  wide.push_back(erase_row("wide"));

  REQUIRE(server.write(wide).status().code() == StatusCode::kInvalidArgument);
  REQUIRE(server.write({erase_row("long")}).status().code() == StatusCode::kInvalidArgument);

  REQUIRE(server.region().get("long")->size() == 3000);
}

TEST_CASE("cluster: a page ends within a row that has more bytes than a page") {
  OpenRegion open;
  StorageServer& server = open.server;
  REQUIRE(server.write({put("a", "1"), put("c", "1")}).ok());
  for (int i = 0; i < 40; ++i)
    REQUIRE(server.write({put("b", std::string(50, 'v'), std::to_string(10 + i))}).ok());

  cluster::Scan scan{.bytes_max = 300};
  std::vector<std::string> found;
  std::size_t pages = 0;
  std::size_t divided = 0;
  for (bool is_more = true; is_more; ++pages) {
    const auto page = server.region().scan(scan);
    REQUIRE(page.ok());
    REQUIRE(page->cells.size() < 15);
    for (const cluster::Cell& cell : page->cells) found.push_back(cell.row + cell.qualifier);
    is_more = page->next_row.has_value();
    if (!is_more) break;
    if (page->divides_row()) ++divided;
    scan = rest_of(scan, *page);
    // A cell at which a page begins may go.
    if (pages == 1) REQUIRE(server.write({erase_row("c"), put("c", "2")}).ok());
  }

  std::vector<std::string> all{"aq"};
  for (int i = 0; i < 40; ++i) all.push_back("b" + std::to_string(10 + i));
  all.emplace_back("cq");
  REQUIRE(found == all);
  REQUIRE(divided > 3);
  REQUIRE(server.region().get("b")->size() == 40);
}

TEST_CASE("cluster: a row that a page can have is not divided") {
  OpenRegion open;
  for (const char* const row : {"a", "b", "c"})
    for (const char* const name : {"1", "2", "3"})
      REQUIRE(open.server.write({put(row, std::string(20, 'v'), name)}).ok());

  cluster::Scan scan{.bytes_max = 150};
  for (const char* const row : {"a", "b", "c"}) {
    const auto page = open.server.region().scan(scan);
    REQUIRE(page.ok());
    REQUIRE_FALSE(page->divides_row());
    REQUIRE(page->cells.back().row >= std::string(row));
    REQUIRE(page->cells.size() % 3 == 0);
    if (!page->next_row) break;
    scan = rest_of(scan, *page);
  }
}

TEST_CASE("cluster: a scan over deleted cells comes in pages that may be empty") {
  Disk disk;
  StorageServer server(disk, 1);
  server.looks_max = cluster::NewestCells::kLooksLeast;
  disk.make_table({whole_table()});
  REQUIRE(server.start().ok());
  REQUIRE(server.open(whole_table(), 1).ok());
  std::vector<Mutation> dead;
  for (int i = 0; i < 10'000; ++i) dead.push_back(put("dead", "v", std::to_string(10'000 + i)));
  REQUIRE(server.write(dead).ok());
  REQUIRE(server.write({erase_row("dead")}).ok());
  REQUIRE(server.write({put("a", "1"), put("dead", "2", "9"), put("dead", "3", "z")}).ok());
  // A row that the work of a page ends in is not divided.
  std::vector<Mutation> whole;
  for (int i = 0; i < 4000; ++i) whole.push_back(put("whole", "v", std::to_string(10'000 + i)));
  REQUIRE(server.write(whole).ok());
  REQUIRE(server.flush().ok());

  std::size_t pages = 0;
  std::vector<std::string> found;
  cluster::Scan scan{.rows_max = 100};
  for (bool is_more = true; is_more; ++pages) {
    REQUIRE(pages < 20);
    const auto page = server.region().scan(scan);
    REQUIRE(page.ok());
    for (const cluster::Cell& cell : page->cells) {
      if (cell.row != "whole") found.push_back(cell.row + cell.qualifier);
    }
    const auto cells = std::ranges::count(page->cells, "whole", &cluster::Cell::row);
    REQUIRE((cells == 0 || cells == 4000));
    is_more = page->next_row.has_value();
    if (is_more) scan = rest_of(scan, *page);
  }

  REQUIRE(pages >= 4);
  REQUIRE(found == std::vector<std::string>{"aq", "dead9", "deadz"});
  REQUIRE(server.region().get("dead")->size() == 2);
}

TEST_CASE("cluster: rows with any bytes keep their order and their borders") {
  OpenRegion open;
  const std::vector<std::string> rows{std::string("\0", 1),
                                      std::string("\0\0", 2),
                                      std::string("\0\1", 2),
                                      "a",
                                      std::string("a\0", 2),
                                      std::string("a\0\xFF", 3),
                                      "a\1",
                                      "ab",
                                      "\xFF",
                                      "\xFF\xFF"};
  for (const std::string& row : rows) REQUIRE(open.server.write({put(row, row)}).ok());
  REQUIRE(open.server.flush().ok());

  for (const std::string& row : rows) {
    const auto cells = open.server.region().get(row);
    REQUIRE(cells.ok());
    REQUIRE(cells->size() == 1);
    REQUIRE(cells->front().row == row);
  }
  const auto page = open.server.region().scan({.start_row = rows[2], .end_row = rows[7]});
  REQUIRE(page.ok());
  REQUIRE(page->cells.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) REQUIRE(page->cells[i].row == rows[i + 2]);
}

TEST_CASE("cluster: a flush waits for writes under way, and readers see all along") {
  OpenRegion open;
  StorageServer& server = open.server;
  REQUIRE(server.write({put("a", "1")}).ok());
  server.region().write({.mutations = {put("b", "2")}}, *server.log,
                        [](const Result<cluster::WriteResult>& done) { REQUIRE(done.ok()); });
  std::optional<Result<std::uint64_t>> flushed;
  server.region().flush([&](Result<std::uint64_t> done) { flushed = std::move(done); });

  while (!flushed) {
    REQUIRE(open.value("a") == "1");
    REQUIRE(server.work.run_one());
  }

  REQUIRE(flushed->ok());
  REQUIRE(**flushed == server.region().visible_sequence());
  REQUIRE(server.region().memory_bytes() == 0);
  REQUIRE(rows_of(server.region()) == std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}});
}

TEST_CASE("cluster: a failed flush loses nothing, and the next one goes on") {
  OpenRegion open;
  StorageServer& server = open.server;
  REQUIRE(server.write({put("a", "1")}).ok());
  open.disk.env.set_fault([](CrashEnv::Operation operation, const std::string& file) {
    const bool hit = operation == CrashEnv::Operation::kCreate;
    return hit ? leveldb::Status::IOError(file, "No space left on device") : leveldb::Status::OK();
  });
  REQUIRE(server.flush().code() == StatusCode::kStorageFull);
  open.disk.env.set_fault(nullptr);
  REQUIRE(server.write({put("b", "2")}).ok());

  REQUIRE(server.close().ok());

  StorageServer next(open.disk, 2);
  REQUIRE(next.start().ok());
  REQUIRE(next.open(whole_table(), 2).ok());
  REQUIRE(rows_of(next.region()) == std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}});
}

TEST_CASE("cluster: flushes and compactions that fail again and again leave no files") {
  using Operation = CrashEnv::Operation;
  OpenRegion open;
  StorageServer& server = open.server;
  const auto fail_at = [&](Operation at, std::string_view part) {
    open.disk.env.set_fault([at, part](Operation operation, const std::string& file) {
      const bool hit = operation == at && file.find(part) != std::string::npos &&
                       file.find("/data/") != std::string::npos;
      return hit ? leveldb::Status::IOError(file, "No space left on device")
                 : leveldb::Status::OK();
    });
  };
  for (const char* const row : {"a", "b"}) {
    REQUIRE(server.write({put(row, "1")}).ok());
    REQUIRE(server.flush().ok());
  }
  REQUIRE(server.write({put("c", "1")}).ok());
  const std::size_t files = open.disk.env.files().size();

  for (const Operation at : {Operation::kAppend, Operation::kSync, Operation::kRename}) {
    for (int attempt = 0; attempt < 5; ++attempt) {
      fail_at(at, "");
      REQUIRE_FALSE(server.flush().ok());
      REQUIRE_FALSE(server.compact().ok());
      // A file that no list has yet, and the draft of the list.
      REQUIRE(open.disk.env.files().size() <= files + 2);
    }
  }
  open.disk.env.set_fault(nullptr);
  REQUIRE(server.flush().ok());
  REQUIRE(server.compact().ok());

  REQUIRE(server.region().file_count() == 1);
  REQUIRE(open.disk.env.files().size() <= files);
  REQUIRE(rows_of(server.region()).size() == 3);
}

TEST_CASE("cluster: a closed region refuses, and the next opening has a higher sequence") {
  OpenRegion open;
  StorageServer& server = open.server;
  const std::uint64_t first = server.region().open_sequence();
  const auto written = server.write({put("a", "1")}, nonce(5));
  REQUIRE(written.ok());
  REQUIRE(server.close().ok());
  REQUIRE(server.region().get("a").status().code() == StatusCode::kUnavailable);
  REQUIRE(server.write({put("a", "2")}).status().code() == StatusCode::kUnavailable);
  REQUIRE(server.flush().code() == StatusCode::kUnavailable);

  REQUIRE(server.open(whole_table(), 2).ok());

  REQUIRE(server.region().open_sequence() > written->sequence);
  REQUIRE(written->sequence > first);
  const auto nonces = server.region().nonces();
  REQUIRE(nonces.ok());
  REQUIRE(nonces->size() == 1);
  cluster::WriteResult saved;
  REQUIRE(decode_fields(saved, FieldSelection::kAll, nonces->front().result).ok());
  REQUIRE(saved == *written);
  const std::uint64_t second = server.region().open_sequence();
  REQUIRE(server.close().ok());
  REQUIRE(server.open(whole_table(), 3).ok());
  REQUIRE(server.region().open_sequence() > second);
}

TEST_CASE("cluster: what an earlier opening still does to a region changes nothing") {
  OpenRegion open;
  StorageServer& old = open.server;
  REQUIRE(old.write({put("a", "1")}).ok());
  REQUIRE(old.flush().ok());
  REQUIRE(old.write({put("b", "2")}).ok());
  REQUIRE(old.flush().ok());
  REQUIRE(old.write({put("c", "3")}).ok());

  // The master gave the region to another server; the old one does not know yet.
  REQUIRE(recover(open.disk, old.name()).ok());
  StorageServer next(open.disk, 2);
  REQUIRE(next.start().ok());
  REQUIRE(next.open(whole_table(), 2).ok());
  REQUIRE(next.write({erase("a")}).ok());
  REQUIRE(next.flush().ok());
  REQUIRE(next.compact().ok());
  REQUIRE(old.compact().code() == StatusCode::kFenced);
  REQUIRE(old.region().get("a").status().code() == StatusCode::kFenced);
  REQUIRE(next.close().ok());

  REQUIRE(next.open(whole_table(), 3).ok());
  REQUIRE(rows_of(next.region()) == std::map<std::string, std::string>{{"b", "2"}, {"c", "3"}});
  REQUIRE(old.open(whole_table(), 1).code() == StatusCode::kFenced);
}

TEST_CASE("cluster: cells of a removed family stay away when the family comes back") {
  const auto without =
      cluster::next_descriptor(with_families({"f", "g"}), {kTable, {"f"}}, 2, false);
  const auto again = cluster::next_descriptor(without, {kTable, {"f", "g"}}, 3, false);
  OpenRegion open;
  StorageServer& old = open.server;
  Mutation in_g = put("a", "old");
  in_g.family = "g";
  REQUIRE(old.write({put("a", "1"), in_g}).ok());
  // What a server that died has acknowledged is in its log only.
  const bool flushes = GENERATE(true, false);
  if (flushes) REQUIRE(old.close().ok());
  REQUIRE(recover(open.disk, old.name()).ok());

  StorageServer server(open.disk, 2);
  REQUIRE(server.start().ok());
  const bool opens_in_between = GENERATE(true, false);
  CAPTURE(flushes, opens_in_between);
  if (opens_in_between) {
    REQUIRE(server.open(whole_table(), 2, without).ok());
    REQUIRE(server.region().get("a")->size() == 1);
    REQUIRE(server.write({in_g}).status().code() == StatusCode::kInvalidArgument);
    REQUIRE(server.close().ok());
  }
  REQUIRE(server.open(whole_table(), 3, again).ok());
  REQUIRE(server.region().get("a", {"f"})->size() == 1);
  REQUIRE(server.region().get("a", {"g"})->empty());
  REQUIRE(server.compact().ok());
  REQUIRE(server.region().get("a", {"g"})->empty());

  // The new family stays, also in files that one without `g` has a part in.
  REQUIRE(server.write({in_g}).ok());
  REQUIRE(server.flush().ok());
  REQUIRE(server.compact().ok());
  REQUIRE(server.close().ok());
  REQUIRE(server.open(whole_table(), 4, again).ok());
  REQUIRE(server.region().get("a", {"g"})->size() == 1);
}

TEST_CASE("cluster: cells of a removed family are work of a page like deleted ones") {
  const auto without =
      cluster::next_descriptor(with_families({"f", "g"}), {kTable, {"f"}}, 2, false);
  const auto again = cluster::next_descriptor(without, {kTable, {"f", "g"}}, 3, false);
  OpenRegion open;
  StorageServer& server = open.server;
  std::vector<Mutation> in_g;
  for (int i = 0; i < 10'000; ++i) {
    in_g.push_back(put("m" + std::to_string(10'000 + i), "v"));
    in_g.back().family = "g";
  }
  REQUIRE(server.write(in_g).ok());
  REQUIRE(server.write({put("z", "1")}).ok());
  REQUIRE(server.close().ok());
  server.looks_max = cluster::NewestCells::kLooksLeast;
  REQUIRE(server.open(whole_table(), 2, again).ok());

  const auto page = server.region().scan({});

  REQUIRE(page.ok());
  REQUIRE(page->cells.empty());
  REQUIRE(page->next_row);
  REQUIRE(rows_of(server.region()) == std::map<std::string, std::string>{{"z", "1"}});
  // A newer version of such a cell counts, and the older one stays away after it is deleted.
  REQUIRE(server.write({in_g.front()}).ok());
  REQUIRE(server.region().get(in_g.front().row, {"g"})->size() == 1);
  REQUIRE(server.write({erase_row(in_g.front().row)}).ok());
  REQUIRE(server.region().get(in_g.front().row, {"g"})->empty());
}

TEST_CASE("cluster: a family is as old as the descriptor that it came with") {
  Disk disk;
  const auto since = [&](std::vector<std::string> families) {
    REQUIRE(disk.tables.write_descriptor({kTable, std::move(families)}).ok());
    return disk.tables.read_stored_descriptor(kTable)->since;
  };
  using Versions = std::vector<std::uint64_t>;
  REQUIRE(since({"f", "g"}) == Versions{1, 1});
  REQUIRE(since({"f", "g"}) == Versions{1, 1});
  REQUIRE(since({"g", "h", "f"}) == Versions{1, 2, 1});
  REQUIRE(since({"h"}) == Versions{2});
  REQUIRE(since({"f", "h"}) == Versions{4, 2});

  // A descriptor is repaired: what is stored under it does not vanish.
  disk.env.set_contents(disk.layout.descriptor(kTable, 4), "damaged");
  REQUIRE(since({"f", "h"}) == Versions{0, 0});
  REQUIRE(since({"h"}) == Versions{0});
  REQUIRE(since({"h", "f"}) == Versions{0, 7});
}

TEST_CASE("cluster: compaction forgets nonces that are old and no longer promised") {
  OpenRegion open;
  StorageServer& server = open.server;
  const auto at = [](int second) { return WallTime(std::chrono::seconds(second)); };
  server.now = at(10);
  REQUIRE(server.write({put("a", "1")}, nonce(1)).ok());
  cluster::WriteNonce promised = nonce(2);
  promised.expires_at = at(100);
  REQUIRE(server.write({put("a", "2")}, promised).ok());
  server.now = at(50);
  REQUIRE(server.write({put("b", "3")}, nonce(3)).ok());
  REQUIRE(server.flush().ok());
  REQUIRE(nonces_of(server.region()) == std::vector<std::uint64_t>{1, 2, 3});

  REQUIRE(server.compact({.done_before = at(20), .expired_before = at(60)}).ok());
  REQUIRE(nonces_of(server.region()) == std::vector<std::uint64_t>{2, 3});
  REQUIRE(server.compact({.done_before = at(20), .expired_before = at(101)}).ok());

  REQUIRE(nonces_of(server.region()) == std::vector<std::uint64_t>{3});
}

TEST_CASE("cluster: the split point divides the bytes and is never the first row") {
  OpenRegion open;
  StorageServer& server = open.server;
  REQUIRE(!*server.region().split_point());
  REQUIRE(server.write({put("a", std::string(5000, 'x'))}).ok());
  REQUIRE(!*server.region().split_point());
  REQUIRE(server.write({put("b", "1"), put("c", "1")}).ok());
  REQUIRE(**server.region().split_point() == "b");
  REQUIRE(server.write({put("d", std::string(9000, 'x'))}).ok());
  REQUIRE(**server.region().split_point() == "d");
}

}  // namespace pv2::testing::region_test
