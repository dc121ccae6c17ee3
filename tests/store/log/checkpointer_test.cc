// SPDX-License-Identifier: Apache-2.0
//
// When full segments move into the database, what waits for that, and what a failure ends. The log
// is a whole one; the database is a list of what was written into it.

#include "log/checkpointer.h"

#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../step_files.h"
#include "../store_fixture.h"
#include "log/step_log.h"
#include "log_fixture.h"
#include "support/catch.h"

namespace pv2::testing::checkpointer_test {
namespace {

using Kind = Checkpointer::Thread;

// Remembers what was written, may fail, and may be held up. Thread-safe.
class Database final : public CheckpointWriter {
 public:
  Status write_checkpoint(const Overlay::Checkpoint& checkpoint, SegmentNumber next) override {
    std::unique_lock lock(mutex_);
    ++begun_;
    nice_ = getpriority(PRIO_PROCESS, 0);
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    if (fails_) return Status(StatusCode::kIoError, "the database is on fire");
    PV2_ASSERT(next.value == checkpoint.segment.value + 1, "the log goes on behind it");
    segments_.push_back(checkpoint.segment.value);
    rows_ += checkpoint.rows.size();
    last_ = checkpoint.last.value;
    needs_ = checkpoint.needs.value;
    return Status();
  }
  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  /// Waits until so many checkpoints have been begun.
  void wait_for_begun(int checkpoints) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ >= checkpoints; });
  }
  [[nodiscard]] int begun() const {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  void fail(bool fails) {
    const std::lock_guard lock(mutex_);
    fails_ = fails;
  }
  [[nodiscard]] std::vector<std::uint64_t> segments() const {
    const std::lock_guard lock(mutex_);
    return segments_;
  }
  [[nodiscard]] std::size_t rows() const {
    const std::lock_guard lock(mutex_);
    return rows_;
  }
  [[nodiscard]] std::uint64_t needs() const {
    const std::lock_guard lock(mutex_);
    return needs_;
  }
  /// The nice value of the last thread that wrote.
  [[nodiscard]] int nice() const {
    const std::lock_guard lock(mutex_);
    return nice_;
  }
  [[nodiscard]] std::uint64_t last() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool fails_ = false;
  int begun_ = 0;
  int nice_ = 0;
  std::vector<std::uint64_t> segments_;
  std::size_t rows_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t needs_ = 0;
};

// A log whose segments hold `kPerSegment` commits each.
constexpr std::size_t kPerSegment = 4;
constexpr std::size_t kFiles = 3;

struct Ground {
  CrashEnv env;
  Database database;
  Overlay overlay;
  SegmentPool pool;
  Checkpointer checkpointer;
  StepLog log;
  std::uint64_t commits = 0;

  explicit Ground(Kind kind, std::size_t files = kFiles)
      : pool(env, env.directory_sync(), "store",
             {.bytes_min = bytes(), .bytes_max = bytes(), .files_max = files}),
        checkpointer(overlay, pool, database, kind),
        log(env, "store", overlay, checkpointer) {
    REQUIRE(env.CreateDir("store").ok());
    REQUIRE(checkpointer.start().ok());
    log.begin_with({1});
  }
  static std::size_t bytes() { return kPerSegment * frame_of(1, 10'000'000).size() + 5; }
  Status append() {
    Unit unit(++commits);
    unit.insert(std::to_string(10'000'000 + commits), std::string(20, 'v'));
    return log.append(unit.list());
  }
  // Returns when the thread that appends waits for a file.
  void wait_until_log_waits() const {
    while (!checkpointer.is_awaited()) std::this_thread::yield();
  }
};

TEST_CASE("the newest full segment waits until there is another one") {
  Ground ground(Kind::kCaller);
  for (std::size_t i = 0; i < 2 * kPerSegment; ++i) REQUIRE(ground.append().ok());
  REQUIRE(ground.database.segments().empty());  // one is full, and the second one is not sealed
  REQUIRE(ground.append().ok());
  REQUIRE(ground.database.segments() == std::vector<std::uint64_t>{1});
  REQUIRE(ground.database.last() == kPerSegment);
  for (std::size_t i = 0; i < 10 * kPerSegment; ++i) REQUIRE(ground.append().ok());
  std::vector<std::uint64_t> expected;
  for (std::uint64_t segment = 1; segment <= 11; ++segment) expected.push_back(segment);
  REQUIRE(ground.database.segments() == expected);
  REQUIRE(ground.database.rows() == 11 * kPerSegment);
}

TEST_CASE("if no other file can be had, the newest full segment does not wait") {
  const auto kind = GENERATE(Kind::kCaller, Kind::kOwn);
  Ground ground(kind, 1);
  for (std::size_t i = 0; i < 5 * kPerSegment; ++i) REQUIRE(ground.append().ok());
  REQUIRE(ground.database.segments() == std::vector<std::uint64_t>{1, 2, 3, 4});
  REQUIRE(ground.env.files().size() == 1);
}

TEST_CASE("a checkpoint that fails ends the log, with its reason for each later commit") {
  const auto kind = GENERATE(Kind::kCaller, Kind::kOwn);
  Ground ground(kind);
  ground.database.fail(true);
  std::size_t appended = 0;
  Status failed;
  while ((failed = ground.append()).ok()) ++appended;

  REQUIRE(failed.code() == StatusCode::kIoError);
  REQUIRE_THAT(std::string(failed.message()), ContainsSubstring("the database is on fire"));
  REQUIRE(appended >= 2 * kPerSegment);
  REQUIRE(appended <= kFiles * kPerSegment);
  REQUIRE(ground.append() == failed);
  REQUIRE(ground.checkpointer.failure() == failed);
  ground.database.fail(false);
  REQUIRE(ground.append() == failed);
  REQUIRE(ground.database.segments().empty());
  // Everything that was acknowledged is still in the log.
  for (std::size_t commit = 1; commit <= appended; ++commit) {
    REQUIRE(ground.overlay.get("H" + std::to_string(10'000'000 + commit)).has_value());
  }
}

TEST_CASE("a file is free only when the rows of its segment are in the database") {
  const auto kind = GENERATE(Kind::kCaller, Kind::kOwn);
  Ground ground(kind);
  for (std::size_t i = 0; i < 20 * kPerSegment; ++i) {
    REQUIRE(ground.append().ok());
    // What is in no file any more is in the database.
    std::uint64_t lowest = UINT64_MAX;
    for (const std::string& file : step_files(ground.env)) {
      lowest = std::min(lowest, read_frame(ground.env.contents(file), 0)->first.value);
    }
    REQUIRE(lowest <= ground.database.last() + 1);
  }
}

// If the next segment is damaged, a salvage needs the rows that it was to replace.
TEST_CASE(
    "a file is not used again as long as the database lacks rows that the next one replaces") {
  const std::size_t files = GENERATE(1, 2, 3, 4);
  Ground ground(Kind::kCaller, files);
  int lacking = 0;
  for (std::size_t i = 0; i < 20 * kPerSegment; ++i) {
    Unit unit(++ground.commits);
    unit.add([](RowBatch& batch) { batch.put(Space::kHost, "always", std::string(26, 'v')); });
    REQUIRE(ground.log.append(unit.list()).ok());
    const auto segments = ground.database.segments();
    if (segments.empty() || ground.database.needs() == ground.database.last()) continue;
    ++lacking;
    bool found = false;
    for (const std::string& file : step_files(ground.env)) {
      const std::string bytes = ground.env.contents(file);
      found = found || read_frame(bytes, 0)->segment.value == segments.back();
    }
    REQUIRE(found);
  }
  REQUIRE((lacking > 0) == (files > 2));  // with two, the log waits until nothing lacks
  REQUIRE(ground.env.files().size() == files);
}

TEST_CASE("while the database is held up, commits go on until all files are full, and then wait") {
  Ground ground(Kind::kOwn);
  ground.database.hold(true);
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t appended = 0;
  std::uint64_t most_in_log = 0;
  constexpr std::uint64_t kRoom = kFiles * kPerSegment;
  std::thread committer([&] {
    for (std::size_t i = 0; i < 10 * kRoom; ++i) {
      const bool good = ground.append().ok();
      const std::uint64_t in_log = ground.commits - ground.database.last();
      const std::lock_guard lock(mutex);
      if (good) ++appended;
      most_in_log = std::max(most_in_log, in_log);
      changed.notify_all();
    }
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return appended == kRoom; });
  }
  ground.wait_until_log_waits();
  ground.database.hold(false);
  committer.join();

  REQUIRE(appended == 10 * kRoom);
  REQUIRE(most_in_log <= kRoom);
  REQUIRE(ground.env.files().size() == kFiles);
}

TEST_CASE("a log that waits for the database is told of its failure") {
  const bool in_checkpoint = GENERATE(false, true);
  CAPTURE(in_checkpoint);
  // With one file, a checkpoint is begun only because the log waits. With more, it is begun before.
  const std::size_t files = in_checkpoint ? kFiles : 1;
  Ground ground(Kind::kOwn, files);
  ground.database.hold(true);
  ground.database.fail(true);
  for (std::size_t i = 0; i < files * kPerSegment; ++i) REQUIRE(ground.append().ok());
  if (in_checkpoint) ground.database.wait_for_begun(1);
  REQUIRE(ground.database.begun() == (in_checkpoint ? 1 : 0));

  Status failed;
  std::thread waits([&] { failed = ground.append(); });
  ground.wait_until_log_waits();
  ground.database.wait_for_begun(1);
  ground.database.hold(false);
  waits.join();

  REQUIRE(failed.code() == StatusCode::kIoError);
  REQUIRE_THAT(std::string(failed.message()), ContainsSubstring("the database is on fire"));
  REQUIRE(ground.append() == failed);
  REQUIRE(ground.database.begun() == 1);
}

TEST_CASE("those who commit go before the thread that makes checkpoints") {
  const Kind kind = GENERATE(Kind::kOwn, Kind::kCaller);
  Ground ground(kind);
  for (std::size_t i = 0; i < 3 * kPerSegment; ++i) REQUIRE(ground.append().ok());
  ground.database.wait_for_begun(1);
  ground.checkpointer.stop();

  const int own = getpriority(PRIO_PROCESS, 0);
  CHECK(ground.database.nice() == (kind == Kind::kOwn ? std::min(own + 5, 19) : own));
}

TEST_CASE("a checkpointer that stops finishes what it does and begins nothing more") {
  Ground ground(Kind::kOwn);
  ground.database.hold(true);
  for (std::size_t i = 0; i < kFiles * kPerSegment; ++i) REQUIRE(ground.append().ok());
  // All three segments are full then, so a second checkpoint is due after the first.
  Status appended(StatusCode::kInternal, "not answered");
  std::thread waits([&] { appended = ground.append(); });
  ground.wait_until_log_waits();
  ground.database.wait_for_begun(1);

  ground.checkpointer.stop_soon();
  ground.database.hold(false);
  ground.checkpointer.stop();
  waits.join();

  REQUIRE(ground.database.segments() == std::vector<std::uint64_t>{1});
  REQUIRE(ground.database.begun() == 1);
  REQUIRE(appended.to_string() == "OK");
}

TEST_CASE("behind the last frame its block has zeros, whatever the segment's memory had before") {
  Ground ground(Kind::kCaller, 2);
  for (std::size_t i = 0; i < 5 * kPerSegment + 1; ++i) REQUIRE(ground.append().ok());

  const std::string newest = ground.env.contents(step_files(ground.env).back());
  const std::size_t end = frame_ends(newest).back();
  REQUIRE(end < SegmentFile::kBlockBytes);
  REQUIRE(newest.substr(end) == std::string(SegmentFile::kBlockBytes - end, '\0'));
}

TEST_CASE("a unit that is larger than any file makes its file grow, and is read back") {
  const auto kind = GENERATE(Kind::kCaller, Kind::kOwn);
  Ground ground(kind);
  REQUIRE(ground.append().ok());
  for (int i = 0; i < 5; ++i) {
    Unit unit(++ground.commits);
    unit.insert("large" + std::to_string(i), std::string(10 * Ground::bytes(), 'l'));
    REQUIRE(ground.log.append(unit.list()).ok());
    REQUIRE(ground.append().ok());
  }
  REQUIRE(ground.env.files().size() <= kFiles);
  REQUIRE(ground.overlay.get("Hlarge4")->value.size() == 10 * Ground::bytes());
}

TEST_CASE("a log that cannot have a file says why") {
  const auto kind = GENERATE(Kind::kCaller, Kind::kOwn);
  Ground ground(kind);
  ground.env.set_space(Ground::bytes() - 1);
  const Status full = ground.append();
  REQUIRE(full.code() == StatusCode::kStorageFull);
  REQUIRE_THAT(std::string(full.message()), ContainsSubstring("making room for the log"));
}

TEST_CASE("a disk that is full for a second file goes on with the first") {
  const auto kind = GENERATE(Kind::kCaller, Kind::kOwn);
  Ground ground(kind);
  REQUIRE(ground.append().ok());
  ground.env.set_space(Ground::bytes() + 10);
  for (std::size_t i = 0; i < 5 * kPerSegment; ++i) REQUIRE(ground.append().ok());
  REQUIRE(ground.database.segments().size() >= 4);
  ground.env.set_space(SIZE_MAX);
  for (std::size_t i = 0; i < 5 * kPerSegment; ++i) REQUIRE(ground.append().ok());
}

}  // namespace
}  // namespace pv2::testing::checkpointer_test
