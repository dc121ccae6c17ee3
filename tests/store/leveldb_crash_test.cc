// SPDX-License-Identifier: Apache-2.0
//
// Crashes of the LevelDB store on a file system that loses what was not synced. Each round runs
// random commits, cuts the power at a random operation of the file system, and looks at what a new
// store finds. The seed is in every message, and PV2_TEST_SEED repeats its choices, except the
// time at which LevelDB's own thread merges tables.

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "older_store.h"
#include "pv2/base/random.h"
#include "pv2/testing/seeds.h"
#include "step_files.h"
#include "store_fixture.h"
#include "support/catch.h"

namespace pv2::testing::leveldb_crash_test {
namespace {

std::string key_of(int batch, int row) {
  std::string key = std::to_string(1'000'000 + batch) + "/" + std::to_string(row);
  return key;
}

constexpr int kRowsPerBatch = 3;

// One machine: its disk, and what its clients were told. Batch k writes rows k/0..k/2 and sets
// "latest" to k.
class Machine {
 public:
  explicit Machine(std::uint64_t seed) : random_(seed), env_(seed) {}

  // Opens the store, checks what is there, commits until the power goes out (or for a while), and
  // destroys the store.
  void live(CrashEnv::TornTail torn) {
    env_.reboot();
    env_.crash_before_operation(random_.below(120), torn);
    RecordingSink sink;
    // A small buffer, so that tables are written, logs switched and old files removed within a few
    // dozen commits.
    LevelDbOptions options = on_crash_env(env_);
    options.write_buffer_bytes = 64 << 10;
    if (random_.below(2) == 0) {  // rows move into the database all the time
      options.segment_bytes = 1'000 + random_.below(8'000);
      options.segments = 2 + random_.below(3);
    }
    LevelDbProcedureStore store("store", options);
    const Status opened = store.recover_lease(sink);
    if (!opened.ok()) {
      power_must_be_off(opened);
      return;
    }
    const Status loaded = check(store);
    if (!loaded.ok()) {
      power_must_be_off(loaded);
      return;
    }

    std::deque<Request> requests;
    for (int i = 0; i < 60; ++i) {
      const int group = 1 + static_cast<int>(random_.below(4));
      for (int j = 0; j < group; ++j) {
        requests.emplace_back();
        fill(requests.back(), ++started_);
        store.commit(requests.back());
      }
      store.pump();
    }
    acknowledged_ = std::max(acknowledged_, sink.last_acknowledged());
    env_.crash(torn);
  }

  // The last life has no crash: what is there now can be read in full.
  void inspect() {
    env_.reboot();
    RecordingSink sink;
    LevelDbProcedureStore store("store", on_crash_env(env_));
    const Status opened = store.recover_lease(sink);
    INFO(opened.to_string());
    REQUIRE(opened.ok());
    REQUIRE(check(store).ok());
    store.close();
  }

 private:
  void fill(Request& request, int batch) {
    request.number = batch;
    const std::size_t size = 1 + random_.below(random_.below(20) == 0 ? 40'000 : 400);
    for (int row = 0; row < kRowsPerBatch; ++row) {
      request.batch.insert(Space::kProcedure, key_of(batch, row), std::string(size, 'v'));
    }
    request.batch.put(Space::kEngine, "latest", std::to_string(batch));
  }

  // Everything acknowledged is there; if batch k is there, so are all before it; every batch is
  // there completely or not at all.
  Status check(LevelDbProcedureStore& store) {
    std::map<int, int> rows;
    int latest = 0;
    CommitSequence highest;
    Status status = visit_all(store, [&](const StoredRow& row) {
      highest = std::max(highest, row.sequence);
      if (row.space == Space::kEngine) {
        latest = std::stoi(std::string(row.value));
      } else {
        ++rows[std::stoi(std::string(row.key)) - 1'000'000];
      }
      return Status();
    });
    if (!status.ok()) return status;

    REQUIRE(latest >= acknowledged_);
    REQUIRE(static_cast<int>(rows.size()) == latest);
    int expected = 0;
    for (const auto& [batch, count] : rows) {
      REQUIRE(batch == ++expected);
      REQUIRE(count == kRowsPerBatch);
    }
    REQUIRE(highest >= highest_seen_);
    highest_seen_ = highest;
    // A commit that was in flight at the crash and survived is on the disk, so it has to stay there
    // like one that was acknowledged.
    acknowledged_ = latest;
    started_ = latest;
    return status;
  }

  void power_must_be_off(const Status& status) const {
    INFO(status.to_string());
    REQUIRE_THAT(std::string(status.message()), ContainsSubstring("the power is off"));
  }

  Random random_;
  CrashEnv env_;
  int started_ = 0;
  int acknowledged_ = 0;
  CommitSequence highest_seen_;
};

TEST_CASE("after any power cut every acknowledged commit is there, whole and in order") {
  const auto torn =
      GENERATE(CrashEnv::TornTail::kNone, CrashEnv::TornTail::kRandom, CrashEnv::TornTail::kBytes);
  const Seeds seeds = seeds_from_environment(40);
  for (std::uint64_t seed = seeds.first; seed != seeds.first + seeds.count; ++seed) {
    INFO("PV2_TEST_SEED=" << seed << " repeats this, torn tail: " << static_cast<int>(torn));
    Machine machine(seed);
    for (int life = 0; life < 8; ++life) machine.live(torn);
    machine.inspect();
  }
}

TEST_CASE("a power cut at any point of creating a store leaves a place where it can be created") {
  for (std::size_t operation = 0;; ++operation) {
    INFO("power cut before operation " << operation);
    CrashEnv env(operation);
    const LevelDbOptions options = on_crash_env(env);
    RecordingSink sink;
    bool created = false;
    {
      env.crash_before_operation(operation, CrashEnv::TornTail::kRandom);
      LevelDbProcedureStore store("store", options);
      created = store.recover_lease(sink).ok();
      env.crash(CrashEnv::TornTail::kRandom);
    }
    env.reboot();
    LevelDbProcedureStore store("store", options);
    const Status again = store.recover_lease(sink);
    INFO(again.to_string());
    REQUIRE(again.ok());
    store.close();
    if (created) break;
  }
}

TEST_CASE("a power cut at any point of the first commit on a store of an older format") {
  const Seeds seeds = seeds_from_environment(20);
  for (std::uint64_t seed = seeds.first; seed != seeds.first + seeds.count; ++seed) {
    bool committed = false;
    for (std::size_t operation = 0; !committed; ++operation) {
      INFO("PV2_TEST_SEED=" << seed << ", power cut before operation " << operation);
      CrashEnv env(seed);
      write_older_store(env, 9);
      REQUIRE(env.everything_sync()(".").value()().ok());
      env.crash_before_operation(operation, CrashEnv::TornTail::kRandom);
      {
        Writer writer(env);
        committed = writer.open().ok() && writer.write("one more").ok();
        env.crash(CrashEnv::TornTail::kRandom);
      }
      env.reboot();
      Writer writer(env);
      const Status opened = writer.open();
      INFO(opened.to_string());
      REQUIRE(opened.ok());
      const std::size_t rows = load_rows(writer.store()).size();
      REQUIRE(rows >= (committed ? 10 : 9));
      REQUIRE(rows <= 10);
      REQUIRE(writer.write("and another").ok());
      writer.store().close();
    }
  }
}

TEST_CASE(
    "after a failed write every later commit fails and writes nothing, and a restart goes on") {
  const auto failing = GENERATE(CrashEnv::Operation::kAppend, CrashEnv::Operation::kSync);
  // The step log, and the log of the database, into which the first commit of a life moves it.
  const auto what = GENERATE(std::string("/PV2-STEPS-"), std::string(".log"));
  INFO("failing: " << what);
  CrashEnv env;
  Status failure;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    REQUIRE(writer.write("a").ok());
    writer.store().close();
  }
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    env.set_fault([&](CrashEnv::Operation operation, const std::string& file) {
      const bool log = operation == failing && file.find(what) != std::string::npos;
      return log ? leveldb::Status::IOError(file, "the disk is on fire") : leveldb::Status::OK();
    });
    failure = writer.write("b");
    env.set_fault(nullptr);
    const std::size_t operations = env.operations();
    const Status later = writer.write("c");

    REQUIRE(failure.code() == StatusCode::kIoError);
    REQUIRE_THAT(std::string(failure.message()),
                 ContainsSubstring("leveldb commit of 1 batches to store failed: "));
    REQUIRE_THAT(std::string(failure.message()), ContainsSubstring("the disk is on fire"));
    REQUIRE(later == failure);
    REQUIRE(env.operations() == operations);
    writer.store().close();
  }

  Writer writer(env);
  REQUIRE(writer.open().ok());
  REQUIRE(writer.store().get(Space::kHost, "a").value().has_value());
  REQUIRE_FALSE(writer.store().get(Space::kHost, "c").value().has_value());
  REQUIRE(writer.write("d").ok());
  writer.store().close();
}

TEST_CASE("a full disk fails the commit as STORAGE_FULL and loses nothing that was acknowledged") {
  CrashEnv env;
  int acknowledged = 0;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    env.set_space(70'000);  // the first file of the log fits, and little else
    Status status;
    while ((status = writer.write(std::to_string(acknowledged))).ok()) ++acknowledged;

    REQUIRE(status.code() == StatusCode::kStorageFull);
    REQUIRE_THAT(std::string(status.message()), ContainsSubstring("No space left on device"));
    REQUIRE(acknowledged > 10);
    writer.store().close();
  }

  {
    Writer full(env);
    REQUIRE(full.open().ok());  // nothing has to be written to read
    REQUIRE(full.write("one more").code() == StatusCode::kStorageFull);
    full.store().close();
  }
  env.set_space(SIZE_MAX);
  Writer writer(env);
  REQUIRE(writer.open().ok());
  REQUIRE(scan_rows(writer.store(), Space::kHost, "").size() >=
          static_cast<std::size_t>(acknowledged));
  REQUIRE(writer.write("more").ok());
  writer.store().close();
}

// A store that begins a second log within 64 KiB, on a file system whose power goes off at a moment
// that a test chooses. LevelDB's own thread and the one that commits meet at its operations.
class SecondLog {
 public:
  explicit SecondLog(CrashEnv& env) : env_(env) {}

  /// Called before each operation, with whether a second log was begun: true cuts the power.
  using Cut = std::function<bool(CrashEnv::Operation, const std::string& file, bool second_log)>;
  /// Called likewise: true makes the operation wait until the power is off.
  using Hold = Cut;

  /// Commits rows until the power is off, or until one is acknowledged in the second log: it is cut
  /// then. Returns those that were acknowledged.
  std::vector<std::string> commit(CrashEnv::TornTail torn, const Cut& cut, const Hold& hold) {
    LevelDbOptions options = on_crash_env(env_);
    options.write_buffer_bytes = 64 << 10;
    LevelDbProcedureStore store("store", options);
    RecordingSink sink;
    REQUIRE(store.recover_lease(sink).ok());
    env_.set_fault([&](CrashEnv::Operation operation, const std::string& file) {
      std::unique_lock lock(mutex_);
      if (file.ends_with(".log")) note_log(operation, file);
      if (cut(operation, file, begun_)) turn_off(torn);
      if (hold(operation, file, begun_)) changed_.wait(lock, [&] { return off_; });
      return leveldb::Status::OK();
    });
    std::vector<std::string> acknowledged;
    std::deque<Request> requests;
    for (bool off = false; !off;) {
      const std::string key = std::to_string(requests.size());
      requests.emplace_back().batch.insert(Space::kHost, key, std::string(1000, 'v'));
      store.commit(requests.back());
      store.pump();
      if (sink.answers().back().status.ok()) acknowledged.push_back(key);
      const std::lock_guard lock(mutex_);
      if (begun_ && !off_) turn_off(torn);
      off = off_;
    }
    env_.set_fault(nullptr);
    return acknowledged;
  }

 private:
  void note_log(CrashEnv::Operation operation, const std::string& file) {
    if (operation == CrashEnv::Operation::kAppend && first_.empty()) first_ = file;
    if (!first_.empty() && file != first_) begun_ = true;
  }
  void turn_off(CrashEnv::TornTail torn) {
    env_.crash(torn);
    off_ = true;
    changed_.notify_all();
  }

  CrashEnv& env_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string first_;
  bool begun_ = false;
  bool off_ = false;
};

void must_open_with(CrashEnv& env, const std::vector<std::string>& acknowledged) {
  env.reboot();
  Writer writer(env);
  const Status opened = writer.open();
  INFO(opened.to_string());
  REQUIRE(opened.ok());
  REQUIRE(acknowledged.size() > 10);
  for (const std::string& key : acknowledged) {
    INFO("row " << key << " of " << acknowledged.size());
    REQUIRE(writer.store().get(Space::kHost, key).value().has_value());
  }
  writer.store().close();
}

// LevelDB begins a new log, writes the old one's rows into a table in the background, and records
// both in the MANIFEST. The power goes off when this record is written but not yet synced, before
// the new log has any content; all bytes survive, but no name that was not synced.
TEST_CASE("the files in a MANIFEST have durable names before the MANIFEST does") {
  CrashEnv env;
  const auto acknowledged = SecondLog(env).commit(
      CrashEnv::TornTail::kBytes,
      [](CrashEnv::Operation operation, const std::string& file, bool second_log) {
        return second_log && operation == CrashEnv::Operation::kSync &&
               file.find("MANIFEST") != std::string::npos;
      },
      [](CrashEnv::Operation operation, const std::string& file, bool second_log) {
        return second_log && operation == CrashEnv::Operation::kAppend && file.ends_with(".log");
      });
  must_open_with(env, acknowledged);
}

// The table that would have made the name of the new log durable along with its own is never made.
TEST_CASE("the first commit in a new log is acknowledged when the name of the log is durable") {
  CrashEnv env;
  const auto acknowledged = SecondLog(env).commit(
      CrashEnv::TornTail::kNone,
      [](CrashEnv::Operation, const std::string&, bool) { return false; },
      [](CrashEnv::Operation operation, const std::string& file, bool) {
        return operation == CrashEnv::Operation::kCreate && file.ends_with(".ldb");
      });
  must_open_with(env, acknowledged);
}

TEST_CASE("a log that lost a part of its unsynced tail is not damaged") {
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (const char* key : {"a", "b"}) REQUIRE(writer.write(key).ok());
    writer.store().close();
  }
  const std::string log = step_files(env).back();
  const std::string whole = env.contents(log);
  const auto ends = frame_ends(whole);
  REQUIRE(ends.size() == 2);
  const bool with_zeros = GENERATE(false, true);

  for (std::size_t size = ends[0]; size < ends[1]; ++size) {
    INFO("log cut to " << size << " of " << ends[1] << " bytes");
    CrashEnv copy;
    copy_files(env, copy);
    std::string cut = whole.substr(0, size);
    if (with_zeros) cut.resize(whole.size());
    copy.set_contents(log, cut);
    const std::string marks = env.contents("store/PV2-DURABLE");
    copy.set_contents("store/PV2-DURABLE", marks.substr(0, 12));  // b was not synced yet
    Writer writer(copy);
    REQUIRE(writer.open().ok());
    REQUIRE(load_rows(writer.store()) == std::vector<std::string>{"H:a=value of a@1"});
    writer.store().close();
  }
}

// The log of the database has what the step log had, which is still there.
TEST_CASE("a log of the database that lost a part of its unsynced tail is not damaged") {
  CrashEnv env;
  {
    Writer writer(env);
    REQUIRE(writer.open().ok());
    for (const char* key : {"a", "b"}) REQUIRE(writer.write(key).ok());
    writer.store().close();
  }
  {
    CrashEnv::Fault stop = [](CrashEnv::Operation operation, const std::string& file) {
      const bool log = operation == CrashEnv::Operation::kSync && file.ends_with(".log");
      return log ? leveldb::Status::IOError(file, "not yet") : leveldb::Status::OK();
    };
    Writer writer(env);
    REQUIRE(writer.open().ok());
    env.set_fault(stop);
    REQUIRE_FALSE(writer.write("c").ok());
    env.set_fault(nullptr);
  }
  const std::string log = last_database_log(env);
  const std::string whole = env.contents(log);
  REQUIRE(whole.find("value of b") != std::string::npos);

  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO("log cut to " << size << " of " << whole.size() << " bytes");
    CrashEnv copy;
    copy_files(env, copy);
    copy.set_contents(log, whole.substr(0, size));
    Writer writer(copy);
    REQUIRE(writer.open().ok());
    REQUIRE(load_rows(writer.store()) ==
            std::vector<std::string>{"H:a=value of a@1", "H:b=value of b@2"});
    REQUIRE(writer.write("c").ok());
    writer.store().close();
  }
}

}  // namespace
}  // namespace pv2::testing::leveldb_crash_test
