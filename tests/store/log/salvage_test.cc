// SPDX-License-Identifier: Apache-2.0
//
// Salvage of a store whose step log is damaged, in real directories. A salvage either keeps the
// exact state after one commit, and says which, or it is refused and changes nothing. Commits that
// it gave up never come back. The files that it gave up are copied first, as they were.

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "../step_files.h"
#include "../store_fixture.h"
#include "leveldb_salvage.h"
#include "log/segment_pool.h"
#include "pv2/base/random.h"
#include "support/catch.h"
#include "support/row_model.h"

namespace pv2::testing::salvage_test {
namespace {

namespace fs = std::filesystem;

constexpr LevelDbOptions::Committer kPump = LevelDbOptions::Committer::kPump;

// A store whose log has several small files, and the state after each of its commits.
class Ground {
 public:
  explicit Ground(std::uint64_t seed, std::size_t segment_bytes = 3'000)
      : random_(seed), segment_bytes_(segment_bytes) {}

  [[nodiscard]] std::string path() const { return directory_.path("store"); }
  [[nodiscard]] std::size_t commits() const { return states_.size() - 1; }
  Random& random() { return random_; }

  Status open_and(const std::function<void(LevelDbProcedureStore&, RecordingSink&)>& act) {
    RecordingSink sink;
    LevelDbProcedureStore store(
        path(), {.segment_bytes = segment_bytes_, .segments = 3, .committer = kPump});
    Status status = store.recover_lease(sink);
    if (status.ok()) act(store, sink);
    store.close();
    return status;
  }
  void commit(int commits) {
    REQUIRE(open_and([&](LevelDbProcedureStore& store, RecordingSink& sink) {
              std::deque<Request> requests;
              for (int i = 0; i < commits; ++i) {
                Request& request = requests.emplace_back();
                states_.push_back(states_.back());
                states_.back().fill(random_, request.batch, states_.size() - 1);
                store.commit(request);
                sink.wait_for(requests.size(), store);
                REQUIRE(request.status.ok());
                REQUIRE(request.sequence.value == states_.size() - 1);
              }
            }).ok());
  }
  // The store holds exactly what `commits` of them have made.
  void must_have(std::size_t commits) {
    const Status opened = open_and([&](LevelDbProcedureStore& store, RecordingSink&) {
      REQUIRE(load_rows(store) == states_.at(commits).lines());
    });
    INFO(opened.to_string());
    REQUIRE(opened.ok());
    states_.resize(commits + 1);
  }
  [[nodiscard]] std::vector<fs::path> log_files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path())) {
      if (entry.path().filename().string().starts_with(SegmentPool::kFilePrefix)) {
        files.push_back(entry.path());
      }
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  [[nodiscard]] std::map<SegmentNumber, fs::path> in_order() const {
    std::map<SegmentNumber, fs::path> files;
    for (const fs::path& file : log_files()) {
      files[read_frame(read_file(file), 0)->segment] = file;
    }
    return files;
  }

 private:
  const TemporaryDirectory directory_;
  Random random_;
  const std::size_t segment_bytes_;
  std::vector<RowModel> states_{1};
};

void overwrite(const fs::path& file, std::size_t at, std::string_view bytes) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(static_cast<std::streamoff>(at));
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Does something to one file of the log, and says what.
std::string damage(Ground& ground) {
  Random& random = ground.random();
  const auto files = ground.log_files();
  const fs::path file = files[random.below(files.size())];
  const std::string bytes = read_file(file);
  const auto ends = frame_ends(bytes);
  const std::size_t end = ends.empty() ? bytes.size() : ends.back();
  const std::size_t at = random.below(end);
  const std::string where = file.filename().string() + " at " + std::to_string(at);
  switch (random.below(5)) {
    case 0:
      overwrite(file, at, std::string(1, static_cast<char>(bytes[at] ^ (1 << random.below(8)))));
      return "a bit of " + where;
    case 1:
      overwrite(file, at, std::string(std::min<std::size_t>(500, bytes.size() - at), '\0'));
      return "zeros in " + where;
    case 2:
      fs::resize_file(file, at);
      return "the end of " + where;
    case 3:
      fs::remove(file);
      return "all of " + where;
    default:
      fs::copy_file(file, file.string() + "0");
      return "a copy of " + where;
  }
}

// The refusal names one file, or two if it may be either.
void must_have_copied_what_was_named(const Status& refused,
                                     const std::map<std::string, std::string>& before,
                                     const fs::path& copies) {
  for (const auto& [file, bytes] : before) {
    const fs::path name = fs::path(file).filename();
    if (refused.message().find("/" + name.string()) != std::string_view::npos) continue;
    if (refused.message().find(name.string()) == std::string_view::npos) continue;
    INFO(refused.to_string() << "; " << file);
    REQUIRE(fs::exists(copies / name));
    REQUIRE(read_file(copies / name) == bytes);
  }
}

TEST_CASE(
    "after any damage of the log salvage keeps the state after one commit, and work goes on") {
  int salvaged = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Ground ground(seed);
    ground.commit(5 + static_cast<int>(ground.random().below(10)));
    ground.commit(1 + static_cast<int>(ground.random().below(20)));
    const std::string what = damage(ground);
    INFO("seed " << seed << ", lost: " << what);
    const auto before = fingerprint(ground.path());
    const Status refused = ground.open_and([](LevelDbProcedureStore&, RecordingSink&) {});
    if (refused.ok()) {  // the file was free, or the damage is where nothing is
      ground.must_have(ground.commits());
      REQUIRE_FALSE(LevelDbProcedureStore::salvage(ground.path()).value().changed);
    } else {
      REQUIRE(refused.code() == StatusCode::kCorruption);
      REQUIRE(fingerprint(ground.path()) == before);

      const auto salvage = LevelDbProcedureStore::salvage(ground.path());

      INFO(salvage.status().to_string());
      REQUIRE(salvage.ok());
      INFO(salvage.value().report);
      REQUIRE(salvage.value().changed);
      // The copies are of the files before the salvage, which has not changed the log itself.
      const auto copies = fingerprint(salvage.value().copies);
      REQUIRE_FALSE(copies.empty());
      for (const auto& [copy, bytes] : copies) {
        REQUIRE(bytes == before.at(ground.path() + "/" + fs::path(copy).filename().string()));
      }
      must_have_copied_what_was_named(refused, before, salvage.value().copies);
      for (const fs::path& file : ground.log_files()) REQUIRE(read_file(file) == before.at(file));
      ground.must_have(salvage.value().last_kept.value);
      REQUIRE_FALSE(LevelDbProcedureStore::salvage(ground.path()).value().changed);
      ++salvaged;
    }
    ground.commit(8);
    ground.must_have(ground.commits());
  }
  REQUIRE(salvaged > 20);
}

TEST_CASE("salvage of a log that is damaged in its first file keeps the rows of the database") {
  Ground ground(1);
  ground.commit(10);
  ground.commit(1);  // takes over: ten are in the database
  overwrite(ground.log_files().front(), 0, "XXXX");
  for (const fs::path& file : ground.log_files()) overwrite(file, 0, "XXXX");

  const auto salvage = LevelDbProcedureStore::salvage(ground.path());

  REQUIRE(salvage.ok());
  REQUIRE(salvage.value().last_kept.value == 10);
  REQUIRE_THAT(salvage.value().report, ContainsSubstring("Every commit up to 10 is kept"));
  ground.must_have(10);
}

TEST_CASE("a database that has lost everything is salvaged to an empty one, and work goes on") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {  // each has another first segment
    Ground ground(seed);
    ground.commit(5);
    for (const auto& entry : fs::directory_iterator(ground.path())) {
      if (entry.path().extension() == ".log") fs::resize_file(entry.path(), 0);
    }
    const Status refused = ground.open_and([](LevelDbProcedureStore&, RecordingSink&) {});
    REQUIRE(refused.code() == StatusCode::kCorruption);
    const auto before = fingerprint(ground.path());

    const auto salvage = LevelDbProcedureStore::salvage(ground.path());

    INFO(salvage.status().to_string());
    REQUIRE(salvage.ok());
    REQUIRE(salvage.value().last_kept.value == 0);
    must_have_copied_what_was_named(refused, before, salvage.value().copies);
    ground.must_have(0);
    ground.commit(8);
    ground.must_have(8);
  }
}

// The rows of the last segment in the database that the next one replaces are in these two alone.
TEST_CASE(
    "a salvage that could only leave a state that never was is refused, and changes nothing") {
  Ground ground(3);
  ground.commit(60);
  const auto files = ground.log_files();
  for (const fs::path& file : files) overwrite(file, 0, "XXXX");
  fs::remove(ground.path() + "/PV2-DURABLE");  // the database knows by itself
  const auto before = fingerprint(ground.path());
  const Status refused = ground.open_and([](LevelDbProcedureStore&, RecordingSink&) {});
  REQUIRE(refused.code() == StatusCode::kCorruption);

  const auto salvage = LevelDbProcedureStore::salvage(ground.path());

  INFO(salvage.status().to_string());
  REQUIRE(salvage.status().code() == StatusCode::kNotSupported);
  REQUIRE_THAT(std::string(salvage.status().message()),
               ContainsSubstring("a salvage would leave a state that never was"));
  auto after = fingerprint(ground.path());
  after[ground.path() + "/PV2-LOCK"] = before.at(ground.path() + "/PV2-LOCK");
  REQUIRE(after == before);
}

// The database's log is damaged, and what the step log has of that is in use again.
TEST_CASE("a salvage of the database's log that is refused changes nothing") {
  Ground ground(5);
  ground.commit(250);
  fs::path log;
  for (const auto& entry : fs::directory_iterator(ground.path())) {
    if (entry.path().extension() == ".log") log = entry.path();
  }
  const std::string bytes = read_file(log);
  REQUIRE(bytes.size() > 1'000);
  overwrite(log, bytes.size() / 4, "XXXX");
  for (const fs::path& file : ground.log_files()) overwrite(file, 0, "XXXX");
  const auto before = fingerprint(ground.path());

  const auto salvage = LevelDbProcedureStore::salvage(ground.path());

  INFO(salvage.status().to_string());
  REQUIRE(salvage.status().code() == StatusCode::kNotSupported);
  auto after = fingerprint(ground.path());
  after[ground.path() + "/PV2-LOCK"] = before.at(ground.path() + "/PV2-LOCK");
  REQUIRE(after == before);
}

TEST_CASE("without PV2-DURABLE the database still misses the end of the log that it needs") {
  Ground ground(3);
  ground.commit(60);
  auto in_order = ground.in_order();
  // The newest files have lost everything, as if nobody had written them.
  REQUIRE(in_order.size() == 3);
  in_order.erase(in_order.begin());
  for (const auto& [number, file] : in_order) fs::resize_file(file, 0);
  fs::remove(ground.path() + "/PV2-DURABLE");

  const Status refused = ground.open_and([](LevelDbProcedureStore&, RecordingSink&) {});

  REQUIRE(refused.code() == StatusCode::kCorruption);
  REQUIRE_THAT(std::string(refused.message()),
               ContainsSubstring("its end is missing: the database needs it up to commit "));
  const auto salvage = LevelDbProcedureStore::salvage(ground.path());
  REQUIRE(salvage.ok());
  ground.must_have(salvage.value().last_kept.value);
  ground.commit(3);
  ground.must_have(ground.commits());
}

TEST_CASE("zeros that a power cut has left behind LevelDB's files are nothing to salvage") {
  Ground ground(4);
  ground.commit(60);
  for (const auto& entry : fs::directory_iterator(ground.path())) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("MANIFEST") && !name.ends_with(".log")) continue;
    fs::resize_file(entry.path(), fs::file_size(entry.path()) + 600);
  }
  const auto before = fingerprint(ground.path());

  const auto salvage = LevelDbProcedureStore::salvage(ground.path());

  REQUIRE(salvage.ok());
  REQUIRE_FALSE(salvage.value().changed);
  auto after = fingerprint(ground.path());
  after[ground.path() + "/PV2-LOCK"] = before.at(ground.path() + "/PV2-LOCK");
  REQUIRE(after == before);
  ground.must_have(60);

  const auto newest = ground.in_order().rbegin()->second;
  overwrite(newest, 40, "XXXX");
  const auto damaged = LevelDbProcedureStore::salvage(ground.path());
  REQUIRE(damaged.ok());
  REQUIRE(damaged.value().changed);
  REQUIRE(damaged.value().report.find("MANIFEST") == std::string::npos);
  ground.must_have(damaged.value().last_kept.value);
}

// Of such damage only the marks tell.
TEST_CASE("salvage of a log whose last frame is damaged keeps a copy of that frame") {
  const bool marks_are_damaged = GENERATE(false, true);
  Ground ground(6, 60'000);
  ground.commit(20);
  const fs::path file = ground.log_files().front();
  const std::string bytes = read_file(file);
  overwrite(file, frame_ends(bytes).back() - 1, std::string(1, static_cast<char>(~bytes.back())));
  if (marks_are_damaged) overwrite(ground.path() + "/PV2-DURABLE", 3, "X");
  const Status refused = ground.open_and([](LevelDbProcedureStore&, RecordingSink&) {});
  REQUIRE(refused.code() == StatusCode::kCorruption);
  const auto before = fingerprint(ground.path());

  const auto salvage = LevelDbProcedureStore::salvage(ground.path());

  REQUIRE(salvage.ok());
  REQUIRE(salvage.value().last_kept.value == 19);
  REQUIRE(read_file(fs::path(salvage.value().copies) / file.filename()) == before.at(file));
  must_have_copied_what_was_named(refused, before, salvage.value().copies);
  ground.must_have(19);
}

TEST_CASE("a salvage that is cut off anywhere has copied what it gives up, or it is refused on") {
  bool finished = false;
  for (std::size_t cut = 0; !finished; ++cut) {
    INFO("power off before operation " << cut);
    CrashEnv env;
    {
      Writer writer(env);
      REQUIRE(writer.open().ok());
      for (int i = 1; i <= 5; ++i) REQUIRE(writer.write(std::to_string(i)).ok());
      writer.store().close();
    }
    const std::string file = step_files(env).back();
    std::string bytes = env.contents(file);
    bytes[frame_ends(bytes).back() - 1] ^= 1;
    env.set_contents(file, bytes);
    const LevelDbDirectory directory("store", LevelDbFiles(env, env.directory_sync()));
    const auto plan = plan_salvage(directory, /*has_step_log=*/true);
    REQUIRE(plan.ok());
    const auto log =
        recover_log(directory.files(), "store", read_frame(bytes, 0)->segment, CommitSequence{0});
    REQUIRE(log.value().last.value == 4);

    env.crash_before_operation(cut);
    SalvageReport done;
    Status status = give_up_damaged_ends(directory, *plan, *log, done);
    if (status.ok()) status = give_up_later_commits(directory, *plan, *log, done);
    finished = status.ok();
    env.crash();
    env.reboot();

    Writer next(env);
    const Status opened = next.open();
    if (opened.ok()) {
      REQUIRE(load_rows(next.store()).size() == 4);
      REQUIRE(env.contents("store.salvaged-1/" + name_in_store(file)) == bytes);
    } else {
      REQUIRE(opened.code() == StatusCode::kCorruption);
      REQUIRE(env.contents(file) == bytes);
    }
    REQUIRE(opened.ok() >= finished);
    next.store().close();
  }
}

TEST_CASE("commits that a salvage gave up do not come back, though their frames are on the disk") {
  Ground ground(2, 60'000);
  ground.commit(12);
  const fs::path file = ground.log_files().front();
  const auto ends = frame_ends(read_file(file));
  REQUIRE(ends.size() >= 3);
  overwrite(file, ends[0] + 40, "XXXX");
  const auto salvage = LevelDbProcedureStore::salvage(ground.path());
  REQUIRE(salvage.ok());
  REQUIRE(salvage.value().changed);
  const std::size_t kept = salvage.value().last_kept.value;
  REQUIRE(kept < 12);

  ground.must_have(kept);
  ground.must_have(kept);
  ground.commit(1);
  ground.must_have(kept + 1);
  ground.commit(30);
  ground.must_have(kept + 31);
}

}  // namespace
}  // namespace pv2::testing::salvage_test
