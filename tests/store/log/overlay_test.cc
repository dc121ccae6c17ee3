// SPDX-License-Identifier: Apache-2.0
//
// The rows that are not in the database yet: reads find what a map of all rows has, at every moment
// of a checkpoint and after every crash, and what nobody needs never reaches the database.

#include "log/overlay.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../store_fixture.h"
#include "log/checkpointer.h"
#include "log/segment_pool.h"
#include "log/step_log.h"
#include "log_fixture.h"
#include "pv2/base/random.h"
#include "support/catch.h"
#include "support/row_model.h"

namespace pv2::testing::overlay_test {
namespace {

using Strings = std::vector<std::string>;

// Of checkpoints that are never made.
class NoDatabase final : public CheckpointWriter {
 public:
  Status write_checkpoint(const Overlay::Checkpoint& /*checkpoint*/,
                          SegmentNumber /*next*/) override {
    return Status(StatusCode::kIoError, "there is no database");
  }
};

// An overlay with a database that is a map. Each unit is a commit.
class Log {
 public:
  // A segment that is complete: `fill` per commit.
  void add(const std::vector<std::function<void(RowBatch&)>>& fills) {
    std::string bytes;
    for (const auto& fill : fills) {
      Unit unit(++last_);
      unit.add(fill);
      bytes += unit.frame(next_);
    }
    segments_.push_back({next_++, bytes, last_});
    overlay_->add(std::make_shared<Segment>(SegmentNumber{segments_.back().number}, bytes,
                                            CommitSequence{last_}));
  }
  // What the next process finds: the bytes, and none of what this one has noted.
  void crash() {
    overlay_ = std::make_unique<Overlay>();
    for (const Bytes& segment : segments_) {
      overlay_->add(std::make_shared<Segment>(SegmentNumber{segment.number}, segment.bytes,
                                              CommitSequence{segment.last}));
    }
  }
  Overlay::Checkpoint begin() {
    auto checkpoint = overlay_->begin_checkpoint();
    REQUIRE(segments_.front().number == checkpoint.segment.value);
    return checkpoint;
  }
  void write(const Overlay::Checkpoint& checkpoint) {
    for (const Overlay::Row& row : checkpoint.rows) {
      if (row.row.deleted) {
        database_.erase(std::string(row.full_key));
      } else {
        database_[std::string(row.full_key)] = {std::string(row.row.value), row.row.sequence.value};
      }
    }
    std::uint64_t last = 0;
    while (!segments_.empty() && segments_.front().number <= checkpoint.segment.value) {
      last = segments_.front().last;
      segments_.erase(segments_.begin());
    }
    REQUIRE(last == checkpoint.last.value);
  }
  void end(const Overlay::Checkpoint& checkpoint) { overlay_->end_checkpoint(checkpoint); }
  // The whole of it. Returns the keys that were written, with a minus before those deleted.
  Strings checkpoint() { return carry_out(begin()); }
  Strings take_over(std::size_t bytes_max) {
    const auto checkpoint = overlay_->begin_take_over(bytes_max);
    REQUIRE(checkpoint.needs == checkpoint.last);
    return carry_out(checkpoint);
  }
  Strings carry_out(const Overlay::Checkpoint& checkpoint) {
    write(checkpoint);
    end(checkpoint);
    Strings keys;
    for (const Overlay::Row& row : checkpoint.rows) {
      keys.push_back((row.row.deleted ? "-" : "") + std::string(row.full_key));
    }
    return keys;
  }

  // As load_rows() gives them.
  [[nodiscard]] Strings rows(std::string_view prefix = "") {
    auto merged = database_;
    std::string before;
    const auto snapshot = overlay_->collect(prefix, [] {});
    for (const Overlay::Row& row : snapshot.rows) {
      REQUIRE(before < row.full_key);
      before = row.full_key;
      REQUIRE(row.full_key.starts_with(prefix));
      if (row.row.deleted) {
        merged.erase(before);
      } else {
        merged[before] = {std::string(row.row.value), row.row.sequence.value};
      }
      const auto found = overlay_->get(before);
      REQUIRE(found.has_value());
      REQUIRE(found->deleted == row.row.deleted);
      REQUIRE(found->value == row.row.value);
      REQUIRE(found->sequence == row.row.sequence);
    }
    Strings rows;
    for (const auto& [key, row] : merged) {
      if (!key.starts_with(prefix)) continue;
      rows.push_back(key.substr(0, 1) + ":" + key.substr(1) + "=" + row.first + "@" +
                     std::to_string(row.second));
    }
    return rows;
  }
  [[nodiscard]] bool has(const std::string& key) {
    const auto found = overlay_->get(key);
    return found ? !found->deleted : database_.contains(key);
  }
  [[nodiscard]] bool in_database(const std::string& key) const { return database_.contains(key); }
  [[nodiscard]] std::size_t segments() const { return segments_.size(); }
  [[nodiscard]] std::size_t bytes_of_next() const { return segments_.front().bytes.size(); }
  [[nodiscard]] std::uint64_t last() const { return last_; }
  [[nodiscard]] bool empty() const { return overlay_->empty(); }

 private:
  struct Bytes {
    std::uint64_t number;
    std::string bytes;
    std::uint64_t last;
  };
  std::uint64_t next_ = 1;
  std::uint64_t last_ = 0;
  std::vector<Bytes> segments_;
  std::map<std::string, std::pair<std::string, std::uint64_t>> database_;
  std::unique_ptr<Overlay> overlay_ = std::make_unique<Overlay>();
};

// Rows of all kinds of places in a segment.
std::vector<std::string_view> checkpoint_keys() { return {"H0", "H77", "H9999", "H15000"}; }

void insert_a(RowBatch& batch) { batch.insert(Space::kHost, "a", "inserted"); }
void update_a(RowBatch& batch) { batch.update(Space::kHost, "a", "updated"); }
void put_a(RowBatch& batch) { batch.put(Space::kHost, "a", "put"); }
void erase_a(RowBatch& batch) { batch.erase(Space::kHost, "a"); }
void other(RowBatch& batch) { batch.put(Space::kHost, "z", "other"); }
auto put(const std::string& key, const std::string& value) {
  return [=](RowBatch& batch) { batch.put(Space::kHost, key, value); };
}
auto erase(const std::string& key) {
  return [=](RowBatch& batch) { batch.erase(Space::kHost, key); };
}

TEST_CASE("a row that is inserted and deleted in one segment never reaches the database") {
  Log log;
  log.add({insert_a, update_a, erase_a, other});
  REQUIRE_FALSE(log.has("Ha"));
  REQUIRE(log.checkpoint() == Strings{"Hz"});
  REQUIRE(log.empty());
}

TEST_CASE("a row that is inserted in one segment and deleted in the next never reaches it either") {
  Log log;
  log.add({insert_a});
  log.add({erase_a, other});
  REQUIRE(log.checkpoint() == Strings{});
  REQUIRE_FALSE(log.has("Ha"));
  REQUIRE(log.checkpoint() == Strings{"Hz"});
}

TEST_CASE("a row that is handed on from segment to segment is written when nothing replaces it") {
  Log log;
  log.add({insert_a});
  for (int i = 0; i < 3; ++i) log.add({update_a});
  for (int i = 0; i < 3; ++i) {
    REQUIRE(log.checkpoint() == Strings{});
    REQUIRE(log.has("Ha"));
  }
  REQUIRE(log.checkpoint() == Strings{"Ha"});
  REQUIRE(log.has("Ha"));
}

TEST_CASE("the deletion of a row that the database has always reaches it") {
  Log log;
  log.add({insert_a});
  log.checkpoint();
  REQUIRE(log.in_database("Ha"));

  SECTION("alone") {
    log.add({erase_a});
    REQUIRE(log.checkpoint() == Strings{"-Ha"});
  }
  SECTION("behind an update") {
    log.add({update_a, erase_a});
    REQUIRE(log.checkpoint() == Strings{"-Ha"});
  }
  SECTION("in the segment behind an update, which is not written") {
    log.add({update_a});
    log.add({erase_a});
    REQUIRE(log.checkpoint() == Strings{});
    REQUIRE(log.checkpoint() == Strings{"-Ha"});
  }
  SECTION("before it is inserted again, in one segment") {
    log.add({erase_a, insert_a, erase_a});
    REQUIRE(log.checkpoint() == Strings{"-Ha"});
  }
  SECTION("before the next segment inserts and deletes it") {
    log.add({erase_a});
    log.add({insert_a, erase_a});
    REQUIRE_FALSE(log.has("Ha"));
    REQUIRE(log.checkpoint() == Strings{"-Ha"});
    REQUIRE_FALSE(log.has("Ha"));
    REQUIRE(log.checkpoint() == Strings{});
  }
  SECTION("before the next segment inserts it, and the third one deletes it") {
    log.add({erase_a});
    log.add({insert_a});
    log.add({erase_a});
    REQUIRE(log.checkpoint() == Strings{"-Ha"});
    REQUIRE(log.checkpoint() == Strings{});
    REQUIRE_FALSE(log.has("Ha"));
    REQUIRE(log.checkpoint() == Strings{});
  }
  SECTION("behind a put in the segment that first has it") {
    log.add({put_a, erase_a});
    REQUIRE(log.checkpoint() == Strings{"-Ha"});
  }
  REQUIRE_FALSE(log.in_database("Ha"));
  REQUIRE_FALSE(log.has("Ha"));
}

TEST_CASE("a crash between two checkpoints brings no deleted row back") {
  Log log;
  log.add({insert_a});
  log.checkpoint();
  log.add({erase_a});
  log.add({insert_a, erase_a});
  log.add({insert_a});
  log.add({erase_a});
  while (!log.empty()) {
    REQUIRE_FALSE(log.has("Ha"));
    const auto checkpoint = log.begin();
    log.write(checkpoint);
    log.crash();
  }
  REQUIRE_FALSE(log.in_database("Ha"));
}

TEST_CASE("a log is taken over in one write, with the newest value of each row") {
  Log log;
  log.add({put("a", "1"), put("b", "1"), put("c", "1")});
  log.add({put("b", "2"), erase("c")});
  log.add({put("b", "3"), put("d", "3")});
  log.crash();
  const Strings before = log.rows();

  CHECK(log.take_over(1'000'000) == Strings{"Ha", "Hb", "-Hc", "Hd"});

  CHECK(log.empty());
  CHECK(log.segments() == 0);
  CHECK(log.rows() == before);
}

TEST_CASE("what is taken over in parts is complete after each part") {
  Log log;
  for (int i = 0; i < 4; ++i) log.add({put("a", std::to_string(i)), put("b", "b")});
  log.crash();
  const Strings before = log.rows();

  CHECK(log.take_over(1) == Strings{"Ha", "Hb"});  // one, however small the bound is
  CHECK(log.segments() == 3);
  CHECK(log.in_database("Ha"));
  CHECK(log.rows() == before);
  CHECK(log.take_over(2 * log.bytes_of_next() + 1) == Strings{"Ha", "Hb"});
  CHECK(log.segments() == 1);
  CHECK(log.rows() == before);
}

TEST_CASE("a row that was deleted and put again in a segment is there, and is one row") {
  Log log;
  log.add({insert_a, erase_a, put_a});
  REQUIRE(log.rows() == Strings{"H:a=put@3"});
  log.checkpoint();
  REQUIRE(log.rows() == Strings{"H:a=put@3"});
}

TEST_CASE("frames that are not durable yet are not there") {
  Overlay overlay;
  auto segment = std::make_shared<Segment>(SegmentNumber{1}, 1'000);
  overlay.add(segment);
  Unit first(1);
  first.insert("a", "1");
  Unit second(2);
  second.add([](RowBatch& batch) { batch.update(Space::kHost, "a", "2"); });
  const std::size_t bytes = frame_bytes(first.list());
  write_frame(segment->data(), first.list(), {1});
  write_frame(segment->data() + bytes, second.list(), {1});

  REQUIRE_FALSE(overlay.get("Ha").has_value());
  segment->set_durable(bytes, {1});
  REQUIRE(overlay.get("Ha")->value == "1");
  const auto snapshot = overlay.collect("H", [] {});
  segment->set_durable(bytes + frame_bytes(second.list()), {2});
  REQUIRE(overlay.get("Ha")->value == "2");
  REQUIRE(snapshot.rows.front().row.value == "1");
}

TEST_CASE("a commit that becomes durable during a scan does not wait for it, and is not in it") {
  CrashEnv env;
  Overlay overlay;
  SegmentPool pool(env, env.directory_sync(), "store",
                   {.bytes_min = 10'000, .bytes_max = 10'000, .files_max = 2});
  NoDatabase database;
  Checkpointer checkpointer(overlay, pool, database, Checkpointer::Thread::kCaller);
  StepLog log(env, "store", overlay, checkpointer);
  REQUIRE(env.CreateDir("store").ok());
  log.begin_with({1});
  Unit first(1);
  first.insert("a", "1");
  Unit second(2);
  second.insert("b", "2");
  REQUIRE(log.append(first.list()).ok());
  const auto snapshot = overlay.collect(
      "H", [&] { std::thread([&] { REQUIRE(log.append(second.list()).ok()); }).join(); });
  REQUIRE(snapshot.rows.size() == 1);
  REQUIRE(overlay.get("Hb")->value == "2");
}

// Units of a log whose segments hold three of them.
class Growing {
 public:
  Growing(int units, const std::function<void(RowBatch&, int)>& fill) {
    for (int i = 1; i <= units; ++i) {
      Unit unit(static_cast<std::uint64_t>(i));
      unit.add([&](RowBatch& batch) { fill(batch, i); });
      frames_.push_back(unit.frame(segment_of(i)));
    }
  }
  // Waits for the reader now and then, so that it sees many states.
  void write(Overlay& overlay, const std::atomic<int>& looks) {
    std::shared_ptr<Segment> segment;
    std::size_t used = 0;
    for (int i = 1; i <= static_cast<int>(frames_.size()); ++i) {
      const std::string& frame = frames_[static_cast<std::size_t>(i) - 1];
      if (segment == nullptr || segment->number().value != segment_of(i)) {
        segment = std::make_shared<Segment>(SegmentNumber{segment_of(i)}, 3 * frame.size() + 64);
        used = 0;
        overlay.add(segment);
      }
      frame.copy(segment->data() + used, frame.size());
      used += frame.size();
      segment->set_durable(used, CommitSequence{static_cast<std::uint64_t>(i)});
      const int before = looks.load();
      while (i % 5 == 0 && looks.load() == before) std::this_thread::yield();
    }
  }

 private:
  static std::uint64_t segment_of(int unit) { return static_cast<std::uint64_t>(unit + 2) / 3; }
  std::vector<std::string> frames_;
};

// The thread sanitizer looks as well.
TEST_CASE("what readers see of a log that grows is of one moment, and never goes back") {
  constexpr int kUnits = 600;
  const bool in_one_unit = GENERATE(true, false);
  // Two rows in one unit are equal at each moment; if they are in turn in one unit each, the first
  // one is equal or one ahead.
  Growing log(kUnits, [&](RowBatch& batch, int unit) {
    if (in_one_unit || unit % 2 == 1) {
      batch.put(Space::kHost, "a", std::to_string(in_one_unit ? unit : (unit + 1) / 2));
    }
    if (in_one_unit || unit % 2 == 0) {
      batch.put(Space::kHost, "b", std::to_string(in_one_unit ? unit : unit / 2));
    }
  });
  Overlay overlay;
  std::atomic<int> looks = 0;
  std::atomic<bool> done = false;
  std::thread committer([&] { log.write(overlay, looks); });
  std::thread indexer([&] {
    while (!done.load()) overlay.index_all();
  });
  int last = 0;
  int states = 0;
  int torn = 0;
  int back = 0;
  while (last != (in_one_unit ? kUnits : kUnits / 2)) {
    const auto snapshot = overlay.collect("H", [] {});
    const auto found = overlay.get("Hb");
    ++looks;
    if (snapshot.rows.size() < 2) continue;
    const int a = std::stoi(std::string(snapshot.rows.front().row.value));
    const int b = std::stoi(std::string(snapshot.rows.back().row.value));
    if (a != b && (in_one_unit || a != b + 1)) ++torn;
    if (b < last || !found || std::stoi(found->value) < b) ++back;
    if (b != last) ++states;
    last = b;
  }
  done = true;
  committer.join();
  indexer.join();
  CHECK(torn == 0);
  CHECK(back == 0);
  CHECK(states > 10);
}

TEST_CASE("what is indexed ahead of a read is all that is durable, not the newest part alone") {
  Overlay overlay;
  const auto oldest =
      std::make_shared<Segment>(SegmentNumber{1}, frame_of(1, 1), CommitSequence{1});
  const auto newest =
      std::make_shared<Segment>(SegmentNumber{2}, frame_of(2, 2), CommitSequence{2});
  overlay.add(oldest);
  overlay.add(newest);
  overlay.index_all();
  CHECK(oldest->find("H1").has_value());
  CHECK(newest->find("H2").has_value());
}

TEST_CASE("the rows of a checkpoint are in the order of their keys, whatever bytes these have") {
  const auto random_key = [](Random& random) {
    std::string key(random.below(3) == 0 ? 40 : 0, 'p');
    for (std::uint64_t left = random.below(12); left > 0; --left) {
      key += std::string_view("\0a\x7f\x80\xff", 5)[random.below(5)];
    }
    return key;
  };
  Random random(1);
  std::set<std::string> keys;
  while (keys.size() < 20'000) keys.insert(random_key(random));
  Log log;
  std::vector<std::string> shuffled(keys.begin(), keys.end());
  for (std::size_t i = shuffled.size(); i > 1; --i) {
    std::swap(shuffled[i - 1], shuffled[random.below(i)]);
  }
  log.add({[&](RowBatch& batch) {
    for (const std::string& key : shuffled) batch.insert(Space::kHost, key, "v");
  }});
  const auto checkpoint = log.begin();
  REQUIRE(checkpoint.rows.size() == keys.size());
  auto key = keys.begin();
  for (const Overlay::Row& row : checkpoint.rows) {
    if (row.full_key != "H" + *key++) FAIL("not in order");
  }
}

// A sort by bytes goes one level deeper for each byte in which keys differ.
TEST_CASE("keys that each begin with the one before are sorted on a small stack") {
  constexpr std::size_t kKeys = 4'000;
  Log log;
  log.add({[&](RowBatch& batch) {
    for (std::size_t i = kKeys; i > 0; --i) batch.insert(Space::kHost, std::string(i, 'p'), "v");
  }});
  std::size_t rows = 0;
  bool in_order = true;
  std::function<void()> sort = [&] {
    const auto checkpoint = log.begin();
    rows = checkpoint.rows.size();
    for (std::size_t i = 0; i < rows; ++i) {
      in_order = in_order && checkpoint.rows[i].full_key.size() == i + 2;
    }
  };
  pthread_attr_t small_stack;
  pthread_t thread{};
  REQUIRE(pthread_attr_init(&small_stack) == 0);
  REQUIRE(pthread_attr_setstacksize(&small_stack, std::size_t{256} << 10) == 0);
  const auto run = [](void* function) -> void* {
    (*static_cast<std::function<void()>*>(function))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &small_stack, run, &sort) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  REQUIRE(pthread_attr_destroy(&small_stack) == 0);
  CHECK(rows == kKeys);
  CHECK(in_order);
}

TEST_CASE("a snapshot outlives the segments that it was made of") {
  Log log;
  Overlay overlay;
  overlay.add(std::make_shared<Segment>(SegmentNumber{1}, frame_of(1, 1), CommitSequence{1}));
  bool called = false;
  const auto snapshot = overlay.collect("H", [&] { called = true; });
  overlay.end_checkpoint(overlay.begin_checkpoint());

  REQUIRE(called);
  REQUIRE(overlay.empty());
  REQUIRE(snapshot.rows.size() == 1);
  REQUIRE(snapshot.rows[0].row.value == std::string(20, 'b'));
}

// The next segment forgets a row when the oldest one, which has inserted it, is not there any more.
TEST_CASE("a row that was deleted is not seen while the segment that inserted it is removed") {
  constexpr int kRows = 20'000;
  Unit inserts(1);
  Unit deletes(2);
  inserts.add([](RowBatch& batch) {
    for (int row = 0; row < kRows; ++row) batch.insert(Space::kHost, std::to_string(row), "v");
  });
  deletes.add([](RowBatch& batch) {
    for (int row = 0; row < kRows; ++row) batch.erase(Space::kHost, std::to_string(row));
  });
  for (int round = 0; round < 60; ++round) {
    Overlay overlay;
    overlay.add(std::make_shared<Segment>(SegmentNumber{1}, inserts.frame(1), CommitSequence{1}));
    overlay.add(std::make_shared<Segment>(SegmentNumber{2}, deletes.frame(2), CommitSequence{2}));
    const auto checkpoint = overlay.begin_checkpoint();
    REQUIRE(checkpoint.rows.empty());
    std::atomic<bool> done = false;
    std::atomic<int> looks = 0;
    int seen = 0;
    std::thread reader([&] {
      do {
        for (const std::string_view key : checkpoint_keys()) {
          const auto found = overlay.get(key);
          if (found && !found->deleted) ++seen;
        }
        ++looks;
      } while (!done.load());
    });
    while (looks.load() == 0) std::this_thread::yield();
    overlay.end_checkpoint(checkpoint);
    done = true;
    reader.join();
    REQUIRE(seen == 0);
  }
}

TEST_CASE("random commits in random segments read like a map, at every moment and after a crash") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    Log log;
    RowModel model;
    for (int step = 0; step < 60; ++step) {
      if (random.below(2) == 0) {
        std::vector<std::function<void(RowBatch&)>> fills;
        std::uint64_t sequence = log.last();
        for (std::uint64_t left = 1 + random.below(4); left > 0; --left) {
          fills.emplace_back([&](RowBatch& batch) { model.fill(random, batch, ++sequence); });
        }
        log.add(fills);
      } else if (!log.empty()) {
        const auto checkpoint = log.begin();
        REQUIRE(
            std::is_sorted(checkpoint.rows.begin(), checkpoint.rows.end(),
                           [](const auto& a, const auto& b) { return a.full_key < b.full_key; }));
        if (random.below(4) == 0) {
          log.crash();  // nothing was written
          continue;
        }
        log.write(checkpoint);
        REQUIRE(log.rows() == model.lines());  // in both places
        if (random.below(3) == 0) {
          log.crash();
          while (!log.empty() && random.below(3) != 0) {
            log.take_over(1 + random.below(2'000));
            REQUIRE(log.rows() == model.lines());
          }
        } else {
          log.end(checkpoint);
        }
      }
      REQUIRE(log.rows() == model.lines());
    }
    while (!log.empty()) log.checkpoint();
    REQUIRE(log.rows() == model.lines());
  }
}

}  // namespace
}  // namespace pv2::testing::overlay_test
